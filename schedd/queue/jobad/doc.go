// Package jobad reads what the ad of a job says. It is pure, and depends on the ClassAd
// language and the vocabulary only.
//
// The queue of a schedd reads an ad once, when a job is submitted or altered, or when the
// log is replayed:
//
//	SubmitSpec             a job to be submitted: an ad, a task count, columns
//	ReadSpec               checks an ad, and returns what the queue needs of it
//	JobSpec                resources, gangs, limits, checkpoints, mail and the rest
//	JobSpec.OverrideAttr   applies one task's value of a column
//	JobSpec.RequestAd      what machines and the negotiator see of a class of tasks
//
// Nothing here knows a state: what becomes of a job is in package queue.
package jobad
