package web

import (
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
)

// usageRoutes are those of accounting.
func usageRoutes() []route.Route {
	params := []route.Param{{Name: "all", Description: "1: jobs of all users, for administrators"},
		{Name: "by", Description: "a line for each owner, group, project, band or queue"},
		{Name: "days", Description: "the last days, 30 by default"},
		{Name: "month", Description: "a whole month in UTC, as 2026-03, instead of days"}}
	wasteParams := []route.Param{params[0], params[2], params[3]}
	return []route.Route{
		{Method: "GET", Pattern: "/v1/usage", Page: "/usage", Template: "usage",
			Summary: "what jobs held and used over time", Rights: route.ReadScope, Class: route.Expensive,
			Query: params, View: view.ShowUsage, Reply: view.UsageReport{}, Rows: "usage"},
		{Method: "GET", Pattern: "/v1/usage/waste", Page: "/waste", Template: "waste",
			Summary: "what jobs asked for and did not use", Rights: route.ReadScope, Class: route.Expensive,
			Query: wasteParams, View: view.ShowWaste, Reply: view.Waste{}, Rows: "waste"},
		{Method: "GET", Pattern: "/v1/usage/reclaimed", Page: "/reclaimed", Template: "reclaimed",
			Summary: "what the bands held and used of the machines, by the hour", Rights: route.ReadScope,
			Class: route.Expensive, Query: []route.Param{{Name: "days", Description: "the last days, 2 by default"}},
			View: view.ShowReclaimed, Reply: view.Reclaimed{}, Rows: "hours"},
	}
}
