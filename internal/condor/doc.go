// Package condor has the words of HTCondor's commands: ids, numbers of states, the
// attributes of job ads, and the forms in which condor_q prints them.
//
//	scheddapi.JobStatus ──▶ JobAd ──▶ constraint ──▶ table, batches, -af, -format, -json
//
// The sources are the manual of HTCondor 25 ("Job ClassAd Attributes", condor_q(1),
// condor_submit(1), condor_rm(1)) and its condor_q. A cluster is a job of Roost, and a
// proc is a task of it.
//
// The package is pure.
package condor
