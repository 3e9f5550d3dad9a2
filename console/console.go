package console

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Policy is the Content-Security-Policy of all pages.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// look is how pages look: templates and assets, which are in the program. They are parsed and
// compressed when somebody looks at a page for the first time: most processes are started and
// end without that.
type look struct {
	assets *assets
	pages  map[string]*template.Template
}

// loaded is the same for the whole process. An error is a mistake in what is in the program.
var loaded = sync.OnceValues(load) //nolint:gochecknoglobals // what is in the program does not change

func load() (*look, error) {
	static, err := loadAssets()
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	l := &look{assets: static, pages: map[string]*template.Template{}}
	names, err := files.ReadDir("templates")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	for _, entry := range names {
		name := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		if strings.HasPrefix(name, "_") {
			continue
		}
		page := template.New(entry.Name()).Funcs(l.funcs()).Option("missingkey=error")
		if _, err := page.ParseFS(files, "templates/_*.html", "templates/"+entry.Name()); err != nil {
			return nil, fmt.Errorf("console: page %s: %w", name, err)
		}
		l.pages[name] = page
	}
	return l, nil
}

// Assets serves what pages refer to, at AssetPath.
func Assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, err := loaded()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		l.assets.ServeHTTP(w, r)
	})
}

// View is what a page shows. Each kind of page has its own model, in view_*.go.
type View interface {
	// page is the name of its template.
	page() string
}

// Render writes a whole page. Nothing is written if that does not work. It is safe for
// concurrent use.
func Render(w io.Writer, frame Frame, view View) error {
	l, err := loaded()
	if err != nil {
		return err
	}
	page, ok := l.pages[view.page()]
	if !ok {
		return fmt.Errorf("console: there is no page %q", view.page())
	}
	var b bytes.Buffer
	data := struct {
		Frame
		View View
	}{frame, view}
	part := "frame"
	if view.page() == (LogWindowView{}).page() {
		part = "fragment" // of a page that is there already
	}
	if err := page.ExecuteTemplate(&b, part, data); err != nil {
		return fmt.Errorf("console: render page %q: %w", view.page(), err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
