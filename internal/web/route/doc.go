// Package route is the table of the web daemon's routes and what every request passes
// before a handler sees it.
//
// Each row has a method, a pattern, who may call it, its class of limit, and whether it
// changes state. The zero value of the rights permits nobody, and a test refuses rows
// that have it. The OpenAPI document, the matrix of rights in the tests and the
// dispatcher are made of the same rows.
//
//	request ▶ headers ▶ Host ▶ cross-origin ▶ route ▶ session ▶ rights ▶ limits ▶ handler
//	           (all)    421        403        404 405   401       403      429
//
// Whether a user may see or change a job is not decided here: handlers ask the schedd
// with the user's own login.
package route
