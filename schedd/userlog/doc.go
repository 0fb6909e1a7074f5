// Package userlog writes the user logs of jobs: the files that HTCondor's commands and
// workflow engines read instead of asking a schedd (HTCondor's manual, chapter Managing a
// Job, the job event log). A job names its file in the attribute UserLog.
//
//	events of the queue, on disk ──▶ records ──▶ one row for each file ──▶ the user's agent
//
// A record is written after its event is on disk, with the rights of the user, and never
// by the loop of the schedd. After a restart the records of the jobs in the queue are
// compared with the end of each file, and those that are missing are appended. So a
// record may be late, and is there once, unless its job had left the queue before.
//
// A file that cannot be written does not concern the job: after some tries the records
// for it are dropped, and the schedd's own log says so.
package userlog
