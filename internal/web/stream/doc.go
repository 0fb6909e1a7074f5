// Package stream sends browsers what changes, as server-sent events. A browser has one
// stream for all that its pages show live, because it may have only six connections to a
// server.
//
// All streams of a user share a hub. It has one reader of Schedd.Watch for the jobs that
// any of them wants, at most one event a second for each job, and a ring of the last
// events. A browser that comes back names the last event that it has seen and gets those
// behind it, or the event resync: then it reads the documents again. A browser that does
// not keep up gets resync, too, and never holds up the others.
//
//	Schedd.Watch ──▶ reader ──▶ hub ──▶ ring
//	                             ├────▶ client, 256 KiB ──▶ browser
//	                             └────▶ client            ──▶ browser
package stream
