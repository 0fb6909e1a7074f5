// Package admission decides whether a job may enter a queue, and what the queue makes of
// it. It is pure: everything is a function of the cell policy that the leader sent last
// and of what the job asks for; time is an argument.
//
// A QueueAdmission decides for one submitter. It finds the queue that a job names, checks
// who may use it, applies queue defaults, checks queue limits, and passes the job through
// routing queues to the first destination that accepts it. CheckReferences refuses names
// that the policy does not know. CheckCapacity and GPURefusal compare a job with the
// machines of the pool.
//
// The schedd calls it for a submission, for qalter and qmove, and for the jobs that wait
// in a routing queue. Quotas are not decided here: only the leader knows what a submitter
// has at all schedds, and package negotiation asks it.
package admission
