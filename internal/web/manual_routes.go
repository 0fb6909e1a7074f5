package web

import (
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
)

// manualRoutes are those of the manual.
func (d *server) manualRoutes() []route.Route {
	words := []route.Param{{Name: "q", Description: "words to search"}}
	return []route.Route{
		{Method: "GET", Pattern: "/v1/manual", Page: "/manual", Template: "manual",
			Summary: "the pages of the manual, or those that have some words", Rights: route.ReadScope,
			Class: route.Reads, Query: words, View: view.ShowManual(d.man), Reply: view.ManualIndex{}},
		{Method: "GET", Pattern: "/v1/manual/{page}", Page: "/manual/{page}", Template: "manual_page",
			Summary: "a page of the manual", Rights: route.ReadScope, Class: route.Reads,
			View: view.ShowManualPage(d.man), Reply: view.ManualText{}},
	}
}
