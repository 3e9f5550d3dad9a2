package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
)

const (
	// Path is where GitHub delivers to.
	Path = "/webhooks/github"

	// storeTimeout is well within the ten seconds that GitHub waits.
	storeTimeout = 5 * time.Second
)

// Options are what a Handler is made of.
type Options struct {
	Repositories []Repository
	// Store keeps the commands that people write in comments.
	Store Store
	// Enqueue asks to look at something. It must not block: it is called
	// before the delivery is answered.
	Enqueue func(holdfast.SourceRequest)
	// Ignore are logins whose comments are never commands, whatever the case
	// of their letters. Bots, and comments with a marker of ours, are ignored
	// in any case.
	Ignore []string
	Notify Notify

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Notify has whom to notify of deliveries. None of its functions may block; nil
// means nobody.
type Notify struct {
	// Stored is called after a command was stored, before the answer.
	Stored func()
	// Verified is called with a delivery's context when its signature was found to
	// be right.
	Verified func(context.Context)
	// Answered is called once for each answer, with an event that is one of
	// GitHub's or "other".
	Answered func(event string, status int, d time.Duration)
	// Delivered is called once for each answer, with what was taken in.
	Delivered func(holdfast.Delivery)
}

// Repository is one that may deliver. Several may have one FullName, each with a Name
// and its own Branch: a delivery is for all of them.
type Repository struct {
	Name     string // as Holdfast names it
	FullName string // as GitHub names it: owner/name, in any case of letters
	Branch   string // the tracked branch; only heeded where a FullName has several
	// Secret returns the webhook's secret. It is asked for each delivery, so
	// that a secret can be changed. While it is empty, all are refused; of
	// several with one FullName, one with a secret is enough.
	Secret func() []byte
}

// Store stores commands; *datastore.Store is one.
type Store interface {
	// StoreCommand stores a command once and reports whether it is new.
	StoreCommand(ctx context.Context, c holdfast.Command) (bool, error)
	// WithdrawCommands has the commands refused that a comment gave before some time and
	// that were not carried out yet, and those not stored that come later.
	WithdrawCommands(ctx context.Context, comment holdfast.Comment, before time.Time, why string) error
}

// Handler serves POST /webhooks/github. It is safe for concurrent use.
type Handler struct {
	opts   Options
	engine *gin.Engine
	hosted map[string]hosted // by full name in lower case
	ignore map[string]bool
	bodies *bodies
	decoy  []byte // a secret for repositories that do not exist

	mu     sync.Mutex
	warned map[string]time.Time // by repository: anybody can send forgeries
	ids    map[int64]string     // GitHub's → full name in lower case, as configured
}

// New returns a Handler.
func New(opts Options) (*Handler, error) {
	if opts.Store == nil || opts.Enqueue == nil {
		return nil, errors.New("webhook: a store and a queue are needed")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Notify.Answered == nil {
		opts.Notify.Answered = func(string, int, time.Duration) {}
	}
	if opts.Notify.Delivered == nil {
		opts.Notify.Delivered = func(holdfast.Delivery) {}
	}
	if opts.Notify.Verified == nil {
		opts.Notify.Verified = func(context.Context) {}
	}
	if opts.Notify.Stored == nil {
		opts.Notify.Stored = func() {}
	}
	h := &Handler{
		opts: opts, hosted: make(map[string]hosted, len(opts.Repositories)),
		ignore: make(map[string]bool, len(opts.Ignore)), warned: make(map[string]time.Time),
		ids: make(map[int64]string), bodies: newBodies(), decoy: make([]byte, 32),
	}
	_, _ = rand.Read(h.decoy) // never fails
	for _, login := range opts.Ignore {
		h.ignore[strings.ToLower(login)] = true
	}
	for _, repo := range opts.Repositories {
		key := strings.ToLower(repo.FullName)
		if repo.Name == "" || key == "" || repo.Secret == nil {
			return nil, fmt.Errorf("webhook: repository %q needs a name, a full name and a secret", repo.Name)
		}
		for _, other := range h.hosted[key].entries {
			if other.Branch == repo.Branch {
				return nil, fmt.Errorf("webhook: repositories %q and %q are both branch %q of %s", other.Name, repo.Name, repo.Branch, repo.FullName)
			}
		}
		h.hosted[key] = hosted{fullName: repo.FullName, entries: append(h.hosted[key].entries, repo)}
	}
	gin.SetMode(gin.ReleaseMode)
	h.engine = gin.New()
	h.engine.HandleMethodNotAllowed = true
	h.engine.POST(Path, h.receive)
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.engine.ServeHTTP(w, r) }

// answer is what a delivery is answered with.
type answer struct {
	status int
	text   string
}

func (h *Handler) receive(c *gin.Context) {
	start := h.opts.Now()
	event := c.GetHeader("X-GitHub-Event")
	d := &delivery{event: event}
	a := h.take(c, d)
	switch {
	case a.status == http.StatusServiceUnavailable:
		c.Header("Retry-After", "60")
		fallthrough
	case a.status >= 400:
		c.JSON(a.status, gin.H{"error": a.text})
	default:
		c.JSON(a.status, gin.H{"result": a.text})
	}
	if !acted(event) {
		event = "other"
	}
	took := h.opts.Now().Sub(start)
	h.opts.Notify.Answered(event, a.status, took)
	h.opts.Notify.Delivered(holdfast.Delivery{
		At: start, ID: part(c.GetHeader("X-GitHub-Delivery")), Event: part(d.event), Repo: part(d.fullName), About: part(d.about), Status: a.status, Result: a.text, Took: took,
	})
}

// part is the beginning of what a sender says: it is kept, whoever sends it.
func part(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// take reads, verifies and acts on one delivery.
func (h *Handler) take(c *gin.Context, d *delivery) answer {
	if d.event == "" {
		return answer{http.StatusBadRequest, "the X-GitHub-Event header is missing"}
	}
	mac, reason := signatureOf(c.Request.Header)
	if reason != "" {
		return answer{http.StatusUnauthorized, reason}
	}
	if c.Request.ContentLength > maxBody {
		return answer{http.StatusRequestEntityTooLarge, errTooLong.Error()}
	}
	control := http.NewResponseController(c.Writer)
	reading := h.bodies.begin(func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	defer reading.end()
	body, err := reading.read(c.Request.Body, c.Request.ContentLength)
	switch {
	case errors.Is(err, errTooLong):
		return answer{http.StatusRequestEntityTooLarge, err.Error()}
	case errors.Is(err, errNoRoom):
		return answer{http.StatusServiceUnavailable, err.Error()}
	case err != nil:
		return answer{http.StatusBadRequest, "the body ended early"}
	}
	payload, err := payloadOf(c.ContentType(), body)
	if err != nil {
		return answer{http.StatusBadRequest, err.Error()}
	}
	d.traceParent = traceParent(c.GetHeader("traceparent"))
	if err := d.parse(payload); err != nil {
		return answer{http.StatusBadRequest, "the body is not a payload of GitHub's: " + err.Error()}
	}
	repo, refused := h.verify(c, *d, body, mac)
	if refused.status != 0 {
		return refused
	}
	h.opts.Notify.Verified(c.Request.Context())
	return h.act(c.Request.Context(), repo, *d)
}

// payloadOf returns the JSON in a body: GitHub can be told to send a form.
func payloadOf(contentType string, body []byte) ([]byte, error) {
	switch contentType {
	case "application/json":
		return body, nil
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil || !form.Has("payload") {
			return nil, errors.New("the body is a form without a payload")
		}
		return []byte(form.Get("payload")), nil
	default:
		return nil, errors.New("the body is neither application/json nor a form")
	}
}

// Identify says which id GitHub has for a repository, by the full name that it is
// configured with: deliveries of a renamed one have the id only. Deliveries under
// the configured name say it, too.
func (h *Handler) Identify(fullName string, id int64) {
	key := strings.ToLower(fullName)
	if _, known := h.hosted[key]; !known || id == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids[id] = key
}

// lookup returns the repository that a delivery is of: by its name, otherwise by its
// id.
func (h *Handler) lookup(d delivery) (repo hosted, known bool) {
	key := strings.ToLower(d.fullName)
	if repo, known = h.hosted[key]; known {
		return repo, true
	}
	h.mu.Lock()
	key = h.ids[d.id]
	h.mu.Unlock()
	repo, known = h.hosted[key]
	return repo, known
}

// verify returns the repository that a delivery speaks for, or why it is refused:
// a secret vouches for its own repository only. A delivery that names no
// repository, such as an App's ping, needs the secret of any; what is returned is
// zero then. Whoever has none of the secrets does not learn which repositories
// there are.
func (h *Handler) verify(c *gin.Context, d delivery, body, mac []byte) (hosted, answer) {
	ctx := c.Request.Context()
	repo, known := h.lookup(d)
	good := known && repo.signed(body, mac)
	if !known {
		signed(body, mac, h.decoy) // takes as long
	}
	ours := good || len(body) <= maxUnbound && h.signedByAny(body, mac)
	switch {
	case good:
		if strings.EqualFold(d.fullName, repo.fullName) {
			h.Identify(repo.fullName, d.id)
		} else if h.mayWarn(repo.fullName) {
			h.opts.Logger.WarnContext(ctx, "repository was renamed: change its name in holdfast.yaml",
				"repo", repo.fullName, "name", d.fullName)
		}
		return repo, answer{}
	case ours && d.fullName == "":
		return hosted{}, answer{}
	case ours && !known:
		return hosted{}, answer{http.StatusAccepted, fmt.Sprintf("ignored: the repository %s is not in holdfast.yaml", d.fullName)}
	case ours:
		return hosted{}, answer{http.StatusUnauthorized, fmt.Sprintf("this is the webhook secret of another repository, not of %s", d.fullName)}
	default:
		if known && h.mayWarn(repo.fullName) {
			h.opts.Logger.WarnContext(ctx, "refused a delivery", "repo", repo.fullName, "reason", "BadSignature")
		}
		return hosted{}, answer{http.StatusUnauthorized, "the signature does not match"}
	}
}

// mayWarn reports whether a minute has passed since the last warning about a
// repository: a flood of forgeries must not fill the disk with logs.
func (h *Handler) mayWarn(repo string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	if last, ok := h.warned[repo]; ok && now.Sub(last) < time.Minute {
		return false
	}
	h.warned[repo] = now
	return true
}

// act asks to look at what the delivery is about, and stores what it commands.
func (h *Handler) act(ctx context.Context, repo hosted, d delivery) answer {
	if len(repo.entries) == 0 && d.event != "ping" {
		return answer{http.StatusAccepted, "ignored: no repository"}
	}
	if d.comment.ID != "" {
		commands, err := h.storeAll(ctx, repo, d)
		if err != nil {
			h.opts.Logger.ErrorContext(ctx, "could not store a command", "repo", repo.fullName, "pull_request", d.comment.PullRequest.Number, "err", err)
			return answer{http.StatusServiceUnavailable, "the command could not be stored"}
		}
		ours := h.ignore[strings.ToLower(d.comment.Author)]
		if commands == 0 && (!d.changed || ours) {
			return answer{http.StatusAccepted, "ignored: no command"}
		}
	}
	h.opts.Logger.DebugContext(ctx, "took in a delivery", "repo", repo.fullName, "action", d.event)
	for _, entry := range repo.concerned(d) {
		for _, request := range d.requests {
			request.Repo, request.TraceParent = entry.Name, d.traceParent
			h.opts.Enqueue(request)
		}
	}
	if len(d.requests) == 0 && d.event != "ping" {
		return answer{http.StatusAccepted, "ignored: nothing to do for this event"}
	}
	return answer{http.StatusOK, "accepted"}
}

// storeAll stores the commands of a comment for each entry of its repository and
// returns how many it has: which branch its pull request is to be merged into, and
// so which entry obeys, a comment does not say.
func (h *Handler) storeAll(ctx context.Context, repo hosted, d delivery) (commands int, err error) {
	for _, entry := range repo.entries {
		d.comment.PullRequest.Repo = entry.Name
		if commands, err = h.storeCommands(ctx, d); err != nil {
			return 0, err
		}
	}
	return commands, nil
}

// storeCommands stores the commands of a delivery's comment, withdraws those that it gave
// before it was changed, and returns how many it has. The delivery's end does not end it: a
// command that arrived is kept.
func (h *Handler) storeCommands(ctx context.Context, d delivery) (int, error) {
	comment, withdrawn := d.comment, d.withdrawn
	if comment.Bot || h.ignore[strings.ToLower(comment.Author)] {
		return 0, nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer stop()
	commands := Commands(comment)
	if len(commands) > 0 {
		defer h.opts.Notify.Stored()
	}
	for _, command := range commands {
		if d.kept && command.Barred == "" {
			command.Barred = keptCommand
		}
		if _, err := h.opts.Store.StoreCommand(ctx, command); err != nil {
			return 0, fmt.Errorf("store command %s: %w", command.ID, err)
		}
	}
	if !withdrawn.before.IsZero() {
		if err := h.opts.Store.WithdrawCommands(ctx, comment, withdrawn.before, withdrawn.why); err != nil {
			return 0, err
		}
	}
	return len(commands), nil
}

// traceParent returns a W3C trace context, or nothing if it is not one.
func traceParent(header string) string {
	if len(header) != 55 || header[2] != '-' || header[35] != '-' || header[52] != '-' {
		return ""
	}
	for i, r := range header {
		if i != 2 && i != 35 && i != 52 && !strings.ContainsRune("0123456789abcdef", r) {
			return ""
		}
	}
	return header
}

// jsonError puts into words what json.Unmarshal did not like.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &shape):
		return fmt.Errorf("%s is a %s", shape.Field, shape.Value)
	default:
		return err
	}
}
