package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

//go:embed static templates/*.html templates/_*.html
var files embed.FS

// AssetPath is what the addresses of all assets begin with.
const AssetPath = "/assets/"

// asset is a file that pages refer to, at an address that changes with its content.
type asset struct {
	address string
	kind    string // media type
	data    []byte
	packed  []byte // data in gzip; nil if that is not smaller
}

// assets are all of them, by name and by address.
type assets struct {
	byName, byAddress map[string]*asset
}

// fontOfStyle finds where the style sheet names another file.
var fontOfStyle = regexp.MustCompile(`url\(([^):]+)\)`)

func loadAssets() (*assets, error) {
	a := &assets{byName: map[string]*asset{}, byAddress: map[string]*asset{}}
	var style string
	err := fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name = strings.TrimPrefix(name, "static/")
		data, err := files.ReadFile("static/" + name)
		switch {
		case err != nil:
			return err
		case name == "console.css": // it names others: their addresses come first
			style = string(data)
		default:
			a.add(name, data)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	var missing error
	style = fontOfStyle.ReplaceAllStringFunc(style, func(url string) string {
		name := fontOfStyle.FindStringSubmatch(url)[1]
		font, ok := a.byName[name]
		if !ok {
			missing = fmt.Errorf("style sheet names %q, which does not exist", name)
			return url
		}
		return "url(" + font.address + ")"
	})
	a.add("console.css", []byte(style))
	return a, missing
}

func (a *assets) add(name string, data []byte) {
	sum := sha256.Sum256(data)
	kind := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".woff2" {
		kind = "font/woff2"
	}
	one := &asset{address: AssetPath + hex.EncodeToString(sum[:6]) + "/" + path.Base(name), kind: kind, data: data}
	if packed := pack(data); len(packed) < len(data)*9/10 {
		one.packed = packed
	}
	a.byName[name], a.byAddress[one.address] = one, one
}

func pack(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that exists
	_, _ = w.Write(data)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// ServeHTTP answers with an asset. Its address names its content, so that it may be kept
// forever.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one, ok := a.byAddress[r.URL.Path]
	if !ok {
		http.Error(w, "no such asset", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", one.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if one.packed == nil {
		_, _ = w.Write(one.data) // the reader may have gone
		return
	}
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(one.packed)
		return
	}
	_, _ = w.Write(one.data)
}
