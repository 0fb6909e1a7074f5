package web

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
)

// accountsRoutes are those of prices, budgets, statements and reports. The accountant
// decides who may change them, and what a user may read.
func accountsRoutes() []route.Route {
	payer := []route.Param{{Name: "project", Description: "what is charged to this project"},
		{Name: "group", Description: "what is charged to this group"},
		{Name: "user", Description: "what is charged to this user"}}
	monthly := append(payer[:3:3], route.Param{Name: "month",
		Description: "of this month, as 2026-03; the present one by default"})
	span := append(payer[:3:3], route.Param{Name: "first", Description: "the first month; this one by default"},
		route.Param{Name: "last", Description: "the last month; the first one by default"})
	all := []route.Route{
		{Pattern: "/v1/accounting/rates", Summary: "what an hour of resources costs", View: view.ShowRates,
			Reply: view.RateList{}, Rows: "rates"},
		{Pattern: "/v1/accounting/adjustments", Summary: "what administrators added to the statements of a month",
			Query: monthly, View: view.ShowAdjustments, Reply: view.AdjustmentList{}, Rows: "adjustments"},
		{Pattern: "/v1/accounting/budgets", Summary: "budgets, and what is spent of them", Query: monthly,
			View: view.ShowBudgets, Reply: view.BudgetList{}, Rows: "budgets"},
		{Pattern: "/v1/accounting/statements", Page: "/statement", Template: "statement",
			Summary: "what was charged for a month", Query: monthly, View: view.ShowStatements,
			Reply: view.StatementList{}, Rows: "statements"},
		{Pattern: "/v1/accounting/months", Summary: "which months are closed", View: view.ShowMonths,
			Reply: view.MonthList{}, Rows: "months"},
		{Pattern: "/v1/accounting/reports/{report}", Summary: "a report of roost report", Query: reportParams(),
			View: view.ShowReport, Reply: view.AccountsReport{}, Rows: "lines"},
		{Pattern: "/v1/accounting/exports/{format}",
			Summary: "records as csv, jsonl, xdmod, pbs, swf or borg, as roost sacct --export",
			Query:   exportParams(), Handle: view.Export},
	}
	for i := range all {
		all[i].Method, all[i].Rights, all[i].Class = "GET", route.ReadScope, route.Expensive
	}
	for _, r := range []route.Route{
		{Method: "PUT", Pattern: "/v1/accounting/rates", Summary: "add a rate", Body: query.RateLine{},
			Handle: view.SetRate},
		{Method: "POST", Pattern: "/v1/accounting/recharge", Summary: "charge again what ended since a time",
			Body: view.RechargeRequest{}, Handle: view.Recharge},
		{Method: "POST", Pattern: "/v1/accounting/adjustments", Summary: "add to the statement of an open month",
			Body: query.AdjustmentLine{}, Handle: view.AddAdjustment},
		{Method: "PUT", Pattern: "/v1/accounting/budgets", Summary: "set how much a payer may spend",
			Body: query.BudgetLine{}, Handle: view.SetBudget},
		{Method: "DELETE", Pattern: "/v1/accounting/budgets", Summary: "take the budget of a payer away", Query: span,
			Handle: view.RemoveBudget},
		{Method: "PUT", Pattern: "/v1/accounting/months/{month}/closed", Summary: "close a month before its time",
			Handle: view.CloseMonth},
	} {
		r.Rights, r.Class, r.Changes, r.Reply = route.AdminScope, route.Writes, true, view.ChangedAccounts{}
		all = append(all, r)
	}
	return all
}

func exportParams() []route.Param {
	list := slices.DeleteFunc(reportParams(), func(p route.Param) bool { return p.Name == "detail" })
	return append(list, route.Param{Name: "table",
		Description: "of csv and jsonl: attempts (default), segments, jobs or machines; of borg: " +
			strings.Join(view.TraceTables(), ", ")},
		route.Param{Name: "cluster", Description: "of xdmod and swf: the name of the cluster"},
		route.Param{Name: "pseudonyms", Description: "1: replace the names of users, groups, projects and machines, " +
			"with the key in the header Roost-Pseudonym-Key, and drop those of jobs"})
}

func reportParams() []route.Param {
	return []route.Param{{Name: "days", Description: "the last days, 30 by default"},
		{Name: "month", Description: "a whole month in UTC, as 2026-03, instead of days"},
		{Name: "user", Description: "jobs of this user"},
		{Name: "all", Description: "1: jobs of all users, for administrators"},
		{Name: "group", Description: "jobs of this group and those below it"},
		{Name: "project", Description: "jobs that are charged to this project"},
		{Name: "queue", Description: "jobs of this queue"}, {Name: "band", Description: "jobs of this band"},
		{Name: "detail", Description: "1: a line for each user, or for each hour"},
		{Name: "limit", Description: "at most this many lines, 10000 by default"}}
}
