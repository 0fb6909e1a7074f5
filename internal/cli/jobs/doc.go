// Package jobs holds the commands about jobs: submitting, listing, waiting, explaining,
// changing and translating them.
//
// Job files are parsed in the user's process, and the schedd gets the ad that results. A
// submit has a key, so that it may be sent again when its answer is lost. Lists come from
// all schedds of the pool and name those that do not answer. What --json prints of a job
// is a record of this package; fields are only ever added. The PBS commands use the same
// functions to submit, to wait and to remove what an interrupt leaves.
package jobs
