package manual

import (
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// Page is one manual page.
type Page struct {
	Name     string // "qsub"
	Section  string // "1"
	Summary  string // "submit a job"
	Headings []Heading
	Body     template.HTML // from the first heading on; links are relative to the other pages
	passages []passage
}

// FileName returns the name by which other pages link to the page: "qsub.1".
func (p *Page) FileName() string { return p.Name + "." + p.Section }

// Heading is a section or a subsection of a page.
type Heading struct {
	Text   string `json:"text"`
	Anchor string `json:"anchor"`
	Sub    bool   `json:"sub,omitempty"`
}

// passage is a piece of text that the search finds, and where it is.
type passage struct {
	heading string // under which it stands
	anchor  string
	tag     string // the option or word that it explains; empty for none
	text    string
}

// Manual is all pages.
type Manual struct {
	pages map[string]*Page
	order []*Page
}

// Load reads the pages of a directory whose files are called NAME.SECTION.
func Load(files fs.FS) (*Manual, error) {
	names, err := fs.Glob(files, "*.[1-8]")
	if err != nil {
		return nil, err
	}
	m := &Manual{pages: make(map[string]*Page, len(names))}
	for _, name := range names {
		dot := strings.LastIndexByte(name, '.')
		p := &Page{Name: name[:dot], Section: name[dot+1:]}
		m.pages[name] = p
		m.order = append(m.order, p)
	}
	for _, p := range m.order {
		text, err := fs.ReadFile(files, p.FileName())
		if err != nil {
			return nil, err
		}
		if err := m.convertPage(p, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.FileName(), err)
		}
	}
	slices.SortFunc(m.order, func(a, b *Page) int {
		return strings.Compare(a.Section+a.Name, b.Section+b.Name)
	})
	return m, nil
}

// Page returns a page by the name of its file, or by its name alone.
func (m *Manual) Page(name string) (*Page, error) {
	if p := m.pages[name]; p != nil {
		return p, nil
	}
	for _, p := range m.order {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("manual page %.80q: %w", name, roost.NotFound)
}

// Pages returns all pages, by section and name.
func (m *Manual) Pages() []*Page { return m.order }
