// Package page renders the pages of the web daemon. Each is a template around a view
// struct of package view. Templates escape by context, and the pages have no scripts and
// styles but the files of this package.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/web/route"
)

//go:embed template static
var files embed.FS

// layoutFile is the template around all others.
const layoutFile = "template/layout.html"

// partFiles are the templates of parts that several pages have.
const partFiles = "template/parts/*.html"

// Frame is what a template gets: the view, and what is around it.
type Frame struct {
	User string     // who is logged in; empty: nobody
	Zone route.Zone // of the times on the page
	// pages of one machine for its owner: the pool's are not there
	OwnMachine bool
	Path       string // of the page, for the navigation
	Here       string // path and query of the page, for forms that lead back
	// of the page's address, for links to the same list in another order or form
	Query url.Values
	Data  any // the view
}

// Set is the templates of all pages. Functions of templates do not know for which reader
// they are called, so each zone has templates of its own.
type Set struct {
	of map[templateName]*template.Template
}

type templateName struct {
	name  string
	local bool // times are in the zone of this host
}

// Load parses the templates.
func Load() (*Set, error) {
	names, err := fs.Glob(files, "template/*.html")
	if err != nil {
		return nil, err
	}
	s := &Set{map[templateName]*template.Template{}}
	for _, file := range names {
		if file == layoutFile {
			continue
		}
		t, err := template.New("layout.html").Funcs(functions(time.UTC)).ParseFS(files, layoutFile, partFiles, file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path.Base(file), ".html")
		s.of[templateName{name, false}] = t
		if t, err = t.Clone(); err != nil {
			return nil, err
		}
		s.of[templateName{name, true}] = t.Funcs(functions(time.Local))
	}
	return s, nil
}

// Has reports whether there is a page of a name.
func (s *Set) Has(name string) bool { return s.of[templateName{name, false}] != nil }

// Render writes a page.
func (s *Set) Render(w io.Writer, name string, f Frame) error {
	t := s.of[templateName{name, f.Zone == route.LocalZone}]
	if t == nil {
		return fmt.Errorf("there is no template %q", name)
	}
	return t.Execute(w, f)
}

// maxStatic bounds a static file's name.
const maxStatic = 64

// Static returns a static file and its content type.
func Static(name string) (text []byte, kind string, ok bool) {
	if len(name) > maxStatic || strings.ContainsAny(name, "/\\") {
		return nil, "", false
	}
	kind, ok = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".mjs": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml", ".woff2": "font/woff2"}[path.Ext(name)]
	if !ok {
		return nil, "", false
	}
	text, err := files.ReadFile("static/" + name)
	if err != nil { // one of others; the names are one set
		text, err = files.ReadFile("static/vendor/" + name)
	}
	return text, kind, err == nil
}
