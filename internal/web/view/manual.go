package view

import (
	"html/template"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/manual"
	"github.com/roost-batch/roost/internal/web/route"
)

// ManualIndex is the list of manual pages, or what a search in them has found.
type ManualIndex struct {
	Version  int             `json:"v"`
	Query    string          `json:"query,omitempty"`
	Sections []ManualSection `json:"sections,omitempty"` // without a query
	Hits     []ManualHit     `json:"hits,omitempty"`
}

// ManualSection is one section of the manual.
type ManualSection struct {
	Title string        `json:"title"`
	Pages []ManualEntry `json:"pages"`
}

// ManualEntry is a page in a list.
type ManualEntry struct {
	Page    string `json:"page"` // "qsub.1"
	Name    string `json:"name"` // "qsub(1)"
	Summary string `json:"summary"`
}

// ManualHit is a place that a search has found.
type ManualHit struct {
	ManualEntry
	Heading string `json:"heading,omitempty"`
	Anchor  string `json:"anchor,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Text    string `json:"text"`
}

// ManualText is one manual page.
type ManualText struct {
	Version  int              `json:"v"`
	Name     string           `json:"name"`
	Summary  string           `json:"summary"`
	Headings []manual.Heading `json:"headings"`
	HTML     template.HTML    `json:"html"`
}

// maxManualHits bounds what a search shows.
const maxManualHits = 40

func manualEntry(p *manual.Page) ManualEntry {
	return ManualEntry{p.FileName(), p.Name + "(" + p.Section + ")", p.Summary}
}

// ManualLoader returns the manual, the same each time.
type ManualLoader func() (*manual.Manual, error)

// ShowManual lists the manual pages, or those that a query finds.
func ShowManual(load ManualLoader) func(*route.Call) (any, error) {
	titles := map[string]string{"1": "Commands", "5": "Files", "7": "Ideas and conventions", "8": "Daemons"}
	return func(c *route.Call) (any, error) {
		m, err := load()
		if err != nil {
			return nil, err
		}
		x := ManualIndex{Version: document.Version, Query: c.QueryValue("q")}
		if x.Query != "" {
			x.Hits = []ManualHit{}
			for _, h := range m.Search(x.Query, maxManualHits) {
				x.Hits = append(x.Hits, ManualHit{manualEntry(h.Page), h.Heading, h.Anchor, h.Tag, h.Snippet})
			}
			return x, nil
		}
		for _, p := range m.Pages() {
			n := len(x.Sections)
			if title := titles[p.Section]; n == 0 || x.Sections[n-1].Title != title {
				x.Sections = append(x.Sections, ManualSection{Title: title})
				n++
			}
			x.Sections[n-1].Pages = append(x.Sections[n-1].Pages, manualEntry(p))
		}
		return x, nil
	}
}

// ShowManualPage shows one manual page.
func ShowManualPage(load ManualLoader) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		m, err := load()
		if err != nil {
			return nil, err
		}
		p, err := m.Page(c.PathValue("page"))
		if err != nil {
			return nil, err
		}
		return ManualText{document.Version, p.Name + "(" + p.Section + ")", p.Summary, p.Headings, p.Body}, nil
	}
}
