// Package health decides from results of checks whether an attempt of a service is ready.
//
// A Tracker belongs to one attempt and does nothing by itself: Todo names the checks that
// are due, Apply takes in a result, State says what follows. The caller runs the checks
// (package startd/probe) and acts on changes of the state.
//
//	Starting ──all checks have passed──▶ Ready ◀──passes──▶ Unready   a check for "ready" fails
//	   │                                   │
//	   │ a check cannot pass in time       │ a check for "live" fails
//	   ▼                                   ▼
//	Unready, Failing                    Failing ──passes──▶ Ready
//
//	any ──SetLeaving──▶ Leaving, for ever
//
// Until its first pass a check may fail: within StartWithin failures do not count, and
// after StartWithin/Every + Fails + Passes results it must have passed. A result is
// unknown if the prober was late itself, or the task stood still. It changes nothing.
package health
