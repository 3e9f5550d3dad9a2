package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// Endpoint is where Google's service is.
const Endpoint = "https://storage.googleapis.com"

// Scope is what a token has to be good for.
const Scope = "https://www.googleapis.com/auth/devstorage.read_write"

// Error is an answer of the service other than success.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Status, e.Message) }

// Bucket is a bucket, as a driver. It is safe for concurrent use.
type Bucket struct {
	client   *http.Client // adds the token
	endpoint string
	name     string
}

// New returns the bucket of that name at an endpoint, empty for Google's own. The client
// adds a token to each request.
func New(client *http.Client, endpoint, name string) *Bucket {
	if endpoint == "" {
		endpoint = Endpoint
	}
	return &Bucket{client: client, endpoint: strings.TrimSuffix(endpoint, "/"), name: name}
}

var _ driver.Bucket = (*Bucket)(nil)

// Close is that of a driver.
func (b *Bucket) Close() error { return nil }

// ErrorCode is that of a driver.
func (b *Bucket) ErrorCode(err error) gcerrors.ErrorCode {
	var failure *Error
	if !errors.As(err, &failure) {
		return gcerrors.Unknown
	}
	switch failure.Status {
	case http.StatusNotFound:
		return gcerrors.NotFound
	case http.StatusPreconditionFailed:
		return gcerrors.FailedPrecondition
	default:
		return gcerrors.Unknown
	}
}

// As implements the driver: there is nothing below it.
func (b *Bucket) As(any) bool { return false }

// ErrorAs is that of a driver.
func (b *Bucket) ErrorAs(err error, target any) bool { return errors.As(err, target) }

// object is what the service says of one.
type object struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size,string"`
	Updated time.Time `json:"updated"`
	MD5     []byte    `json:"md5Hash"`
}

func (b *Bucket) objectURL(key string) string {
	return b.endpoint + "/storage/v1/b/" + url.PathEscape(b.name) + "/o/" + url.PathEscape(key)
}

// do sends a request and returns the answer if it is a success.
func (b *Bucket) do(req *http.Request) (*http.Response, error) {
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	message := strings.TrimSpace(string(data)) // of a download it is text
	if json.Unmarshal(data, &said) == nil && said.Error.Message != "" {
		message = said.Error.Message
	}
	return nil, &Error{Status: resp.StatusCode, Message: message}
}

// call sends a request without a body and decodes the answer, unless into is nil.
func (b *Bucket) call(ctx context.Context, method, address string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, address+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := b.do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if into == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// Attributes is that of a driver.
func (b *Bucket) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	var found object
	if err := b.call(ctx, http.MethodGet, b.objectURL(key), url.Values{"fields": {"name,size,updated,md5Hash"}}, &found); err != nil {
		return nil, err
	}
	return &driver.Attributes{ModTime: found.Updated, Size: found.Size, MD5: found.MD5, AsFunc: as}, nil
}

func as(any) bool { return false }

// ListPaged implements the driver, without a delimiter.
func (b *Bucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.Delimiter != "" {
		return nil, errors.ErrUnsupported
	}
	query := url.Values{"fields": {"nextPageToken,items(name,size,updated,md5Hash)"}}
	for name, value := range map[string]string{"prefix": opts.Prefix, "pageToken": string(opts.PageToken)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if opts.PageSize > 0 {
		query.Set("maxResults", strconv.Itoa(opts.PageSize))
	}
	var said struct {
		Items []object `json:"items"`
		Next  string   `json:"nextPageToken"`
	}
	if err := b.call(ctx, http.MethodGet, b.endpoint+"/storage/v1/b/"+url.PathEscape(b.name)+"/o", query, &said); err != nil {
		return nil, err
	}
	page := &driver.ListPage{NextPageToken: []byte(said.Next)}
	for _, o := range said.Items {
		page.Objects = append(page.Objects, &driver.ListObject{Key: o.Name, ModTime: o.Updated, Size: o.Size, MD5: o.MD5, AsFunc: as})
	}
	return page, nil
}

// reader reads an object.
type reader struct {
	io.ReadCloser
	attributes driver.ReaderAttributes
}

func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attributes }
func (r *reader) As(any) bool                          { return false }

// NewRangeReader is that of a driver.
func (b *Bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.objectURL(key)+"?alt=media", http.NoBody)
	if err != nil {
		return nil, err
	}
	switch {
	case length > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case length == 0:
		return nil, errors.ErrUnsupported
	case offset > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := b.do(req)
	if err != nil {
		return nil, err
	}
	size := resp.ContentLength
	if _, total, ok := strings.Cut(resp.Header.Get("Content-Range"), "/"); ok {
		if size, err = strconv.ParseInt(total, 10, 64); err != nil {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("parse Content-Range: %w", err)
		}
	}
	return &reader{resp.Body, driver.ReaderAttributes{ContentType: resp.Header.Get("Content-Type"), Size: size}}, nil
}

// Upload is what a caller of [Bucket.NewTypedWriter] says in BeforeWrite of the object that
// it is about to upload.
type Upload struct {
	Size int64
	MD5  []byte
}

// NewTypedWriter implements the driver, for objects that are uploaded by one call.
func (b *Bucket) NewTypedWriter(ctx context.Context, key, contentType string, opts *driver.WriterOptions) (driver.Writer, error) {
	w := &writer{put: func(body io.Reader, upload Upload) error {
		return b.put(ctx, key, contentType, opts.IfNotExist, body, upload)
	}}
	if opts.BeforeWrite == nil {
		return nil, errors.ErrUnsupported
	}
	return w, opts.BeforeWrite(func(target any) bool {
		upload, ok := target.(**Upload)
		if ok {
			*upload = &w.upload
		}
		return ok
	})
}

// writer stores an object as a whole.
type writer struct {
	put    func(body io.Reader, upload Upload) error
	upload Upload
	err    error
}

// Upload stores the object; Close says how that went.
func (w *writer) Upload(body io.Reader) error {
	w.err = w.put(body, w.upload)
	return nil
}

func (w *writer) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (w *writer) Close() error { return w.err }

// put stores an object by one request: what is known of it, then its bytes. The service
// compares size and checksum before there is an object.
func (b *Bucket) put(ctx context.Context, key, contentType string, fresh bool, body io.Reader, upload Upload) error {
	about, err := json.Marshal(map[string]string{
		"name": key, "contentType": contentType, "md5Hash": base64.StdEncoding.EncodeToString(upload.MD5),
	})
	if err != nil {
		return err
	}
	var head bytes.Buffer
	parts := multipart.NewWriter(&head)
	part, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=UTF-8"}})
	if err != nil {
		return err
	}
	if _, err := part.Write(about); err != nil {
		return err
	}
	if _, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {contentType}}); err != nil {
		return err
	}
	tail := "\r\n--" + parts.Boundary() + "--\r\n"
	query := url.Values{"uploadType": {"multipart"}}
	if fresh {
		query.Set("ifGenerationMatch", "0")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		b.endpoint+"/upload/storage/v1/b/"+url.PathEscape(b.name)+"/o?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.ContentLength = int64(head.Len()) + upload.Size + int64(len(tail))
	req.Body = io.NopCloser(io.MultiReader(&head, body, strings.NewReader(tail)))
	req.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
	resp, err := b.do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var stored object
	if err := json.NewDecoder(resp.Body).Decode(&stored); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	if stored.Size != upload.Size || !bytes.Equal(stored.MD5, upload.MD5) {
		return &Error{Status: http.StatusBadGateway, Message: "what was stored is not what was sent"}
	}
	return nil
}

// Delete is that of a driver.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	return b.call(ctx, http.MethodDelete, b.objectURL(key), nil, nil)
}

// Copy is that of a driver; nobody needs it.
func (b *Bucket) Copy(context.Context, string, string, *driver.CopyOptions) error {
	return errors.ErrUnsupported
}

// SignedURL implements the driver; it is not used.
func (b *Bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errors.ErrUnsupported
}
