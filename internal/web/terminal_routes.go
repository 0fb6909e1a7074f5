package web

import (
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/terminal"
	"github.com/roost-batch/roost/internal/web/view"
)

// terminalRoutes are those of terminals in running tasks. An API token opens none: with a
// shell it could make itself a login of any scope.
func (d *server) terminalRoutes() []route.Route {
	size := []route.Param{{Name: "rows", Description: "rows of the window"},
		{Name: "columns", Description: "columns of the window"}}
	return []route.Route{
		{Method: "GET", Page: "/tasks/{id}/terminal", Template: "terminal", InlineStyles: true,
			Summary: "a terminal in a running task", Rights: route.OwnSession, Class: route.Reads,
			View: view.ShowTerminal},
		{Method: "POST", Pattern: "/v1/tasks/{id}/terminal", Summary: "make a ticket for a terminal in a task",
			Rights: route.OwnSession, Class: route.Writes, Changes: true, Reply: terminal.Ticket{},
			Handle: d.shells.Issue},
		{Method: "GET", Pattern: "/v1/tasks/{id}/terminal", Summary: "the WebSocket of a terminal, with a ticket",
			Rights: route.OwnSession, Class: route.Terminals, Query: size, Handle: d.shells.Serve},
	}
}
