package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/jobtext"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
)

// routes returns the table of all routes.
func (d *server) routes() []route.Route {
	return slices.Concat(d.sessionRoutes(), jobRoutes(d.cursors), d.changeRoutes(), poolRoutes(&d.pool, d.node.Name),
		d.manualRoutes(), usageRoutes(), accountsRoutes(), d.terminalRoutes(), d.serviceRoutes())
}

// sessionRoutes are those of logins and API tokens.
func (d *server) sessionRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Page: "/login", Template: "login", Summary: "the page where links of roost web login lead",
			Rights: route.Anonymous, Class: route.Files, View: view.Login(d.node.Web)},
		{Method: "POST", Pattern: "/v1/session", Page: "/login",
			Summary: "log in with a login token, or with a signed challenge",
			Rights:  route.Anonymous, Class: route.Logins, Changes: true, Body: view.LoginRequest{},
			Reply: view.Session{}, Handle: d.logIn},
		{Method: "GET", Pattern: "/v1/session/challenge", Summary: "a challenge for the key of roost login to sign",
			Rights: route.Anonymous, Class: route.Expensive, Reply: view.Challenge{}, Handle: d.challenge},
		{Method: "POST", Page: "/login/password", Summary: "log in with a password of the schedd's host",
			Rights: route.Anonymous, Class: route.Logins, Changes: true, Handle: d.logInByPassword},
		{Method: "GET", Page: "/login/{provider}", Summary: "begin a login at an OpenID provider",
			Rights: route.Anonymous, Class: route.Expensive, Handle: d.beginProvider},
		{Method: "GET", Page: "/login/{provider}/callback", Template: "callback",
			Summary: "the page where an OpenID provider sends the browser back to",
			Rights:  route.Anonymous, Class: route.Files, View: view.ProviderCallback(d.node.Web)},
		{Method: "POST", Page: "/login/{provider}/callback", Summary: "log in with the answer of an OpenID provider",
			Rights: route.Anonymous, Class: route.Logins, Changes: true, Handle: d.logInByProvider},
		{Method: "GET", Pattern: "/v1/session", Summary: "who is logged in", Rights: route.ReadScope,
			Class: route.Reads, View: view.CurrentSession, Reply: view.Session{}},
		{Method: "DELETE", Pattern: "/v1/session", Summary: "log out", Rights: route.OwnSession, Class: route.Writes,
			Changes: true, Handle: d.logOut},
		{Method: "POST", Page: "/logout", Summary: "log out", Rights: route.OwnSession, Class: route.Writes,
			Changes: true, Handle: d.logOut},
		route.ZoneRoute(),
		{Method: "GET", Pattern: "/v1/logins", Page: "/account", Template: "account",
			Summary: "the user's logins and browsers", Rights: route.ReadScope, Class: route.Reads,
			View: view.ListLogins(d.store), Reply: view.Logins{}},
		{Method: "GET", Pattern: "/v1/tokens", Summary: "the user's API tokens", Rights: route.OwnSession,
			Class: route.Reads, View: view.ListTokens(d.store), Reply: view.Tokens{}},
		{Method: "POST", Pattern: "/v1/tokens", Summary: "make an API token of a login token or a signed challenge",
			Rights: route.Anonymous, Class: route.Logins, Changes: true, Body: view.TokenRequest{},
			Reply: view.NewToken{}, Handle: view.AddToken(d.store)},
		{Method: "DELETE", Pattern: "/v1/tokens/{id}", Summary: "remove an API token", Rights: route.OwnSession,
			Class: route.Writes, Changes: true, Reply: view.Token{}, Handle: view.RemoveToken(d.store)},
	}
}

// jobListParams are what a list of jobs can be restricted by.
func jobListParams() []route.Param {
	return []route.Param{{Name: "all", Description: "1: jobs of all users"},
		{Name: "history", Description: "1: also jobs that have ended"},
		{Name: "state", Description: "only jobs with tasks in this state; may be repeated"},
		{Name: "owner", Description: "only jobs of this user"},
		{Name: "band", Description: "only jobs of this band"},
		{Name: "queue", Description: "only jobs of this queue"},
		{Name: "name", Description: "only jobs with this in their name"},
		{Name: "at", Description: "only jobs of the schedd of this node"},
		{Name: "since", Description: "with history: submitted since then; 31 days by default"},
		{Name: "select", Description: "selectors as for roost jobs, separated by blanks"},
		{Name: "limit", Description: "at most this many, 1 to 1000; 100 by default"},
		{Name: "after", Description: "the cursor next of the part before"}}
}

// jobRoutes are those of jobs and tasks.
func jobRoutes(cursors *view.Cursors) []route.Route {
	list := append(jobListParams(), layoutParams()...)
	tasks := []route.Param{{Name: "state", Description: "only tasks in this state; may be repeated"},
		{Name: "limit", Description: "at most this many, 1 to 1000; 100 by default"},
		{Name: "from", Description: "only tasks from this index on"}}
	nodes := []route.Param{{Name: "state", Description: "only nodes in this state; may be repeated"},
		{Name: "node", Description: "only nodes of this name; may be repeated"},
		{Name: "limit", Description: "at most this many, 1 to 1000; 100 by default"}}
	windows := []route.Param{{Name: "windows", Description: "at most this many, 1 to 2000; of more, neighbours are " +
		"joined"}}
	logs := []route.Param{{Name: "offset", Description: "bytes to leave out at the beginning"},
		{Name: "tail", Description: "only this many bytes from the end"},
		{Name: "follow", Description: "1: send what is added until the task ends"},
		{Name: "whole", Description: "1: all of it, instead of 256 KiB"}}
	return []route.Route{
		{Method: "GET", Pattern: "/v1/jobs", Page: "/jobs", Template: "jobs", Summary: "jobs, the newest first",
			Rights: route.ReadScope, Class: route.Reads, Query: list, View: cursors.Jobs, Reply: view.JobList{},
			Rows: "jobs"},
		{Method: "GET", Pattern: "/v1/jobs/{id}", Page: "/jobs/{id}", Template: "job",
			Summary: "a job or task, and what happened to it", Rights: route.ReadScope, Class: route.Reads,
			View: view.Job, Reply: view.JobDetail{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/events", Summary: "what happened to a job or task",
			Rights: route.ReadScope, Class: route.Reads, View: view.Events, Reply: view.EventList{},
			Rows: "events"},
		{Method: "GET", Pattern: "/v1/jobs/{id}/tasks", Page: "/jobs/{id}/tasks", Template: "tasks",
			Summary: "the tasks of a job, by index", Rights: route.ReadScope, Class: route.Reads,
			Query: tasks, View: view.Tasks, Reply: view.TaskList{}, Rows: "tasks"},
		{Method: "GET", Pattern: "/v1/jobs/{id}/why", Page: "/jobs/{id}/why", Template: "why",
			Summary: "why a job or task does not run", Rights: route.ReadScope, Class: route.Expensive,
			View: view.Why, Reply: document.Explanation{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/when", Summary: "when a job or task is expected to start",
			Rights: route.ReadScope, Class: route.Expensive, View: view.When, Reply: view.StartEstimate{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/definition", Page: "/jobs/{id}/definition", Template: "definition",
			Summary: "what a job asks for", Rights: route.ReadScope, Class: route.Reads,
			View: view.ShowDefinition, Reply: view.Definition{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/dependencies", Page: "/jobs/{id}/dependencies",
			Template: "dependencies", Summary: "what a job waits for and what waits for it, at any distance",
			Rights: route.ReadScope, Class: route.Expensive, View: view.ShowDependencies, Reply: document.JobGraph{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/flow", Page: "/jobs/{id}/flow", Template: "flow",
			Summary: "a flow, and its nodes", Rights: route.ReadScope, Class: route.Expensive, Query: nodes,
			View: view.ShowFlow, Reply: document.FlowNodes{}, Rows: "nodes"},
		{Method: "GET", Pattern: "/v1/jobs/{id}/usage", Page: "/jobs/{id}/usage", Template: "job_usage",
			Summary: "what the tasks of a job used over time, together", Rights: route.ReadScope,
			Class: route.Expensive, Query: windows, View: view.ShowJobUsage, Reply: view.JobUsage{}, Rows: "windows"},
		{Method: "GET", Pattern: "/v1/tasks/{id}/usage", Page: "/tasks/{id}/usage", Template: "job_usage",
			Summary: "what a task used over time", Rights: route.ReadScope, Class: route.Reads, Query: windows,
			View: view.ShowJobUsage, Reply: view.JobUsage{}, Rows: "windows"},
		{Method: "GET", Pattern: "/v1/tasks/{id}", Page: "/tasks/{id}", Template: "job",
			Summary: "a task, and what happened to it", Rights: route.ReadScope, Class: route.Reads,
			View: view.Job, Reply: view.JobDetail{}},
		{Method: "GET", Pattern: "/v1/tasks/{id}/events", Summary: "what happened to a task",
			Rights: route.ReadScope, Class: route.Reads, View: view.Events, Reply: view.EventList{},
			Rows: "events"},
		{Method: "GET", Pattern: "/v1/tasks/{id}/checkpoints", Page: "/tasks/{id}/checkpoints", Template: "checkpoints",
			Summary: "what became of the work of a task, by its checkpoints", Rights: route.ReadScope,
			Class: route.Reads, View: view.TaskCheckpoints, Reply: document.CheckpointTimeline{}},
		{Method: "GET", Pattern: "/v1/tasks/{id}/evictions", Page: "/tasks/{id}/evictions", Template: "evictions",
			Summary: "who displaced a task, what that cost, and where it went on", Rights: route.ReadScope,
			Class: route.Reads, View: view.TaskEvictions, Reply: document.PreemptionChain{}, Rows: "evictions"},
		{Method: "GET", Pattern: "/v1/tasks/{id}/log/{stream}", Summary: "output of a task: out or err, as it is",
			Rights: route.ReadScope, Class: route.Streams, Query: logs, Handle: view.Log},
		{Method: "GET", Pattern: "/v1/tasks/{id}/text/{stream}", Page: "/tasks/{id}/log/{stream}", Template: "log",
			Summary: "a piece of the output of a task as safe text", Rights: route.ReadScope, Class: route.Reads,
			Query: logs, View: view.LogText, Reply: view.LogPage{}},
		logSearchRoute(),
	}
}

// logSearchRoute is that of a search in an output.
func logSearchRoute() route.Route {
	params := []route.Param{{Name: "q", Description: "the text, as it is; at most 200 bytes"},
		{Name: "case", Description: "1: capital letters are not the same as small ones"},
		{Name: "offset", Description: "begin here, with next of the search before"},
		{Name: "line", Description: "the number of the line there, with next_line of the search before"}}
	return route.Route{Method: "GET", Pattern: "/v1/tasks/{id}/search/{stream}", Page: "/tasks/{id}/search/{stream}",
		Template: "log_search", Summary: "lines of the output of a task that have a text in them",
		Rights: route.ReadScope, Class: route.Expensive, Query: params, View: view.SearchLog,
		Reply: view.LogSearch{}, Rows: "lines"}
}

// changeRoutes are those that submit and change jobs.
func (d *server) changeRoutes() []route.Route {
	submitter := view.Submitter{Parser: d.parser}
	past := view.Past{Directory: d.node.Web.Checkpoints, Simulator: d.simulator}
	return []route.Route{
		{Method: "GET", Page: "/submit", Template: "submit", Summary: "the page for a new job",
			Rights: route.SubmitScope, Class: route.Reads, View: view.ShowSubmitForm,
			Query: []route.Param{{Name: "sample", Description: "the sample job file to begin with"}}},
		{Method: "GET", Page: "/jobs/{id}/clone", Template: "submit",
			Summary: "the page for a new job that is the same as another", Rights: route.SubmitScope,
			Class: route.Expensive, View: submitter.ShowClone},
		{Method: "GET", Pattern: "/v1/jobs/{id}/jobfile", Summary: "a job file that makes a job again",
			Rights: route.ReadScope, Class: route.Expensive, View: submitter.ShowJobFile, Reply: view.JobFile{}},
		{Method: "POST", Pattern: "/v1/jobs", Page: "/submit", Summary: "submit the jobs of a job file",
			Rights: route.SubmitScope, Class: route.Writes, Changes: true, MaxBody: maxSubmit,
			Body: view.SubmitRequest{}, Reply: view.Submission{}, Handle: submitter.Submit},
		{Method: "POST", Pattern: "/v1/plan", Page: "/plan", Summary: "what a job file would submit",
			Rights: route.SubmitScope, Class: route.Expensive, Changes: true, MaxBody: maxSubmit,
			Body: view.SubmitRequest{}, Reply: view.Plan{}, Handle: submitter.Plan},
		{Method: "GET", Page: "/whatif", Template: "whatif", Summary: "the page for what-if questions",
			Rights: route.ReadScope, Class: route.Reads, View: view.ShowWhatIf},
		{Method: "POST", Pattern: "/v1/whatif", Page: "/whatif", Summary: "what a change of the pool would do",
			Rights: route.ReadScope, Class: route.Simulations, Changes: true, Body: view.WhatIfRequest{},
			Reply: view.WhatIfResult{}, Handle: view.Questioner{Simulator: d.simulator}.WhatIf},
		{Method: "GET", Pattern: "/v1/past", Summary: "the checkpoints of the cell", Rights: route.ReadScope,
			Class: route.Reads, View: past.List, Reply: view.CheckpointList{}, Rows: "checkpoints"},
		{Method: "GET", Page: "/past", Summary: "the page of the checkpoints of the cell", Rights: route.ReadScope,
			Class: route.Reads, Handle: past.ShowList},
		{Method: "GET", Pattern: "/v1/past/{checkpoint}", Page: "/past/{checkpoint}",
			Summary: "what the cell was like at a checkpoint", Rights: route.ReadScope, Class: route.Simulations,
			Query: []route.Param{{Name: "by", Description: "groups of the page's map: rack (default), class or none"}},
			Reply: cellhistory.PastCell{}, Handle: past.Show},
		{Method: "POST", Pattern: "/v1/acts", Page: "/acts", Summary: "change jobs, or count those that are meant",
			Rights: route.ActScope, Class: route.Writes, Changes: true, Body: view.ActRequest{},
			Reply: view.ActResults{}, Handle: view.Act},
	}
}

// maxSubmit bounds the body of a submission. Each byte of a job file may be several in
// JSON or in a form.
const maxSubmit = 2 * jobtext.MaxText

// poolRoutes are those of the pool.
func poolRoutes(pool *view.Pool, node string) []route.Route {
	nodes := []route.Param{{Name: "state", Description: "only nodes in this state"},
		{Name: "q", Description: "only nodes with this in their name"},
		{Name: "rack", Description: "only nodes of this rack"},
		{Name: "class", Description: "only nodes of this class"},
		{Name: "limit", Description: "at most this many, 1 to 1000; 100 by default"},
		{Name: "after", Description: "the cursor next of the part before"}}
	nodes = append(nodes, layoutParams()...)
	mapQuery := []route.Param{{Name: "by", Description: "groups: rack (default), class or none"},
		{Name: "job", Description: "mark the nodes that run tasks of this job"},
		{Name: "owner", Description: "mark the nodes that run tasks of this user"}}
	services := serviceParams()
	targets := append(services[:len(services):len(services)],
		route.Param{Name: "port", Description: "only the port of this name; all by default"},
		route.Param{Name: "state", Description: "only tasks in this state, as ready"})
	all := []route.Route{
		{Method: "GET", Pattern: "/v1/overview", Page: "/{$}", Template: "overview", Summary: "the state of the pool",
			View: pool.Overview, Reply: view.Overview{}},
		{Method: "GET", Pattern: "/v1/calibration", Page: "/calibration", Template: "calibration",
			Summary: "how far off the estimates of starts were", View: view.ShowCalibration, Reply: view.Calibration{},
			Rows: "estimates"},
		{Method: "GET", Pattern: "/v1/search", Page: "/search", Template: "search", Summary: "jobs and nodes by a word",
			Query: []route.Param{{Name: "q", Description: "an id, a name, or a part of a node's"}},
			View:  pool.Search, Reply: view.SearchResult{}},
		{Method: "GET", Pattern: "/v1/nodes", Page: "/nodes", Template: "nodes", Summary: "execute nodes, by name",
			Query: nodes, View: pool.Nodes, Reply: view.NodeList{}, Rows: "nodes"},
		{Method: "GET", Pattern: "/v1/nodes/{node}", Page: "/nodes/{node}", Template: "node",
			Summary: "an execute node and what runs there", View: pool.Node, Reply: view.NodeDetail{}},
		{Method: "GET", Pattern: "/v1/map", Summary: "four bytes for each node: state, cores, memory and GPUs",
			Query: mapQuery, Handle: pool.MapBytes},
		{Method: "GET", Pattern: "/v1/map/nodes", Page: "/map", Template: "map",
			Summary: "the nodes in groups, in the order of the map", Query: mapQuery, View: pool.Map,
			Reply: view.NodeMap{}},
		{Method: "GET", Pattern: "/v1/shares", Page: "/shares", Template: "shares",
			Summary: "how submitters stand by fair share", Query: layoutParams(), View: view.Shares,
			Reply: view.ShareList{}, Rows: "submitters"},
		{Method: "GET", Pattern: "/v1/names", Page: "/names", Template: "names",
			Summary: "where the tasks of services are reached", Query: services, View: view.Names,
			Reply: view.NameList{}, Rows: "endpoints"},
		{Method: "GET", Pattern: "/v1/names/sd", Summary: "the ports of services, as Prometheus discovers targets",
			Query: targets, Rights: route.MetricsScope, View: view.NameTargets, Reply: []document.ScrapeTarget{}},
		{Method: "GET", Pattern: "/v1/sd", Summary: "the metrics of the daemons, as Prometheus discovers targets",
			Query:  []route.Param{{Name: "daemon", Description: "only daemons of this name, as schedd"}},
			Rights: route.MetricsScope, View: view.DaemonTargets{Node: node}.List, Reply: []document.ScrapeTarget{}},
		allocRoute(), cronRoute(), packagesRoute(), packageRoute(), pilotsRoute(pool), peersRoute(pool),
		{Method: "GET", Pattern: "/v1/secrets", Page: "/secrets", Template: "secrets",
			Summary: "the user's secrets without their values, and the jobs that use them", View: view.ListSecrets,
			Reply: view.SecretList{}, Rows: "secrets"},
		{Method: "GET", Pattern: "/v1/cell", Page: "/cell", Template: "cell", Summary: "settings of the cell",
			View: view.ShowCell, Reply: view.Cell{}},
	}
	all = append(all, nodeHistoryRoutes(pool)...)
	for _, o := range view.ObjectRoutes() {
		all = append(all, route.Route{Method: "GET", Pattern: "/v1/" + o.Path, Page: "/" + o.Path,
			Template: "objects", Summary: o.Summary, View: o.View, Rows: o.Path})
	}
	for i := range all {
		all[i].Rights, all[i].Class = cmp.Or(all[i].Rights, route.ReadScope), route.Reads
		// for all tasks of a user, or of the accountant
		if strings.HasPrefix(all[i].Pattern, "/v1/map") || strings.HasSuffix(all[i].Pattern, "/events") ||
			all[i].Pattern == "/v1/cron" {
			all[i].Class = route.Expensive
		}
	}
	return append(all, objectChangeRoutes()...)
}

// objectChangeRoutes are those that change what administrators keep, for programs and by
// the forms of pages.
func objectChangeRoutes() (all []route.Route) {
	for _, o := range view.ObjectRoutes() {
		set, remove := "make or change one of the "+o.Summary, "remove one of the "+o.Summary
		all = append(all, route.Route{Method: "PUT", Pattern: "/v1/" + o.Path, Summary: set, Handle: o.Set},
			route.Route{Method: "DELETE", Pattern: "/v1/" + o.Path + "/{name}", Summary: remove, Handle: o.Remove},
			route.Route{Method: "POST", Page: "/" + o.Path, Summary: set, Handle: o.SetByForm},
			route.Route{Method: "POST", Page: "/" + o.Path + "/remove", Summary: remove, Handle: o.RemoveByForm})
	}
	for i := range all {
		all[i].Rights, all[i].Class, all[i].Changes = route.AdminScope, route.Writes, true
	}
	return all
}

// layoutParams are those of a list that can be sorted.
func layoutParams() []route.Param {
	return []route.Param{{Name: "sort", Description: "sorted by this column of the page; with - in front, descending"},
		{Name: "columns", Description: "of the page: only these columns, as name,owner; may be repeated"}}
}

// serviceParams are the conditions on services.
func serviceParams() []route.Param {
	return []route.Param{{Name: "owner", Description: "only services of this user"},
		{Name: "name", Description: "only services of this name"},
		{Name: "job", Description: "only the service with this id, as 12.n2"}}
}

// nodeHistoryRoutes are those of what a machine says, and of what became of it.
func nodeHistoryRoutes(pool *view.Pool) []route.Route {
	return []route.Route{
		{Method: "GET", Pattern: "/v1/nodes/{node}/ads", Page: "/nodes/{node}/ads", Template: "node_ad",
			Summary: "what a machine says of itself", View: pool.ShowNodeAd, Reply: view.NodeAd{}},
		{Method: "GET", Pattern: "/v1/nodes/{node}/events", Page: "/nodes/{node}/events", Template: "node_events",
			Summary: "what became of a machine, the newest first", View: pool.ShowNodeEvents, Reply: view.NodeEvents{},
			Query: []route.Param{{Name: "days", Description: "the last days, 30 by default"}}, Rows: "events"},
	}
}

// allocRoute is that of the list of allocs.
func allocRoute() route.Route {
	return route.Route{Method: "GET", Pattern: "/v1/allocs", Page: "/allocs", Template: "allocs",
		Summary: "reserved parts of machines, and what is inside", View: view.Allocs, Reply: view.AllocList{},
		Query: []route.Param{{Name: "all", Description: "1: the allocs of all users"},
			{Name: "set", Description: "only those of the alloc set with this id, as 12.n2"}},
		Rows: "allocs"}
}

// cronRoute is that of the list of schedules.
func cronRoute() route.Route {
	return route.Route{Method: "GET", Pattern: "/v1/cron", Page: "/cron", Template: "cron",
		Summary: "jobs with a schedule, their next runs and what became of the last ones", View: view.ListSchedules,
		Reply: view.CronList{}, Query: []route.Param{{Name: "all", Description: "1: the schedules of all users"}},
		Rows: "schedules"}
}

// pilotsRoute is that of the list of pilots.
func pilotsRoute(pool *view.Pool) route.Route {
	return route.Route{Method: "GET", Pattern: "/v1/pilots", Page: "/pilots", Template: "pilots",
		Summary: "machines that users have brought from other batch systems, by owner and provider",
		View:    pool.Pilots, Reply: view.PilotList{}, Rows: "pilots",
		Query: []route.Param{{Name: "all", Description: "1: the pilots of all users"},
			{Name: "owner", Description: "only pilots of this user"},
			{Name: "provider", Description: "only pilots of this provider"},
			{Name: "state", Description: "only pilots in this state"},
			{Name: "limit", Description: "at most this many, 1 to 1000; 100 by default"},
			{Name: "after", Description: "the cursor next of the part before"}}}
}

// peersRoute is that of what pools lend to each other.
func peersRoute(pool *view.Pool) route.Route {
	return route.Route{Method: "GET", Pattern: "/v1/peers", Page: "/peers", Template: "peers",
		Summary: "what guests from other pools use here, and users of this pool in other pools", View: pool.Flock,
		Reply: view.Flock{}, Rows: "guests"}
}

func packagesRoute() route.Route {
	return route.Route{Method: "GET", Pattern: "/v1/packages", Page: "/packages", Template: "packages",
		Summary: "packages and container images in the store of the pool", View: view.ListPackages,
		Reply: view.PackageList{}, Query: []route.Param{{Name: "after", Description: "names that follow this one"}},
		Rows: "packages"}
}

func packageRoute() route.Route {
	return route.Route{Method: "GET", Pattern: "/v1/packages/{name}", Page: "/packages/{name}", Template: "package",
		Summary: "a package or container image with its versions, and the moves of its labels",
		View:    view.ShowPackage, Reply: view.PackageDetail{}}
}

// serviceRoutes are those of the daemon itself.
func (d *server) serviceRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Pattern: "/v1/stream", Summary: "changes of jobs, as server-sent events",
			Rights: route.ReadScope,
			Class:  route.Streams, Query: []route.Param{{Name: "topics", Description: "jobs as job/12.n2,job/13.n2"}},
			Handle: d.hubs.Serve},
		{Method: "GET", Pattern: "/healthz", Summary: "the daemon lives", Rights: route.Anonymous,
			Class: route.Files, Handle: d.health},
		{Method: "GET", Pattern: "/readyz", Summary: "the daemon and its schedd answer", Rights: route.Anonymous,
			Class: route.Files, Handle: d.ready},
		{Method: "GET", Pattern: "/openapi.json", Summary: "this description", Rights: route.Anonymous,
			Class: route.Files, Handle: d.describe},
		{Method: "GET", Pattern: "/static/{file}", Summary: "a script or style of the pages", Rights: route.Anonymous,
			Class: route.Files, Handle: d.static},
	}
}
