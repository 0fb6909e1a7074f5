// Package jobad reads what the ad of a job says. It is pure, and depends on the ClassAd
// language and the vocabulary only.
//
// The queue of a schedd reads an ad once, when a job is submitted or altered, or when the
// log is replayed:
//
//	SubmitSpec          a job as it is submitted: an ad, a task count, columns of values
//	ReadSpec            checks an ad, and returns what the queue needs of it
//	Spec                resources, gangs, limits, checkpoints, mail and the rest
//	Spec.OverrideAttr   applies one task's value of a column
//	Spec.RequestAd      what machines and the negotiator see of a class of tasks
//
// Nothing here knows a state: what becomes of a job is in package queue.
package jobad
