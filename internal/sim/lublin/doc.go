// Package lublin makes up logs of jobs as the model of Lublin and Feitelson has them (The
// Workload on Parallel Supercomputers: Modeling the Characteristics of Rigid Jobs,
// Journal of Parallel and Distributed Computing 63(11), 2003), fitted to logs of the
// nineties: for where there is no log, or one of another size or load is wanted. It is
// pure: a seed gives one log, on whatever processor.
//
// Three things are drawn for each job.
//
//   - Its size: it is serial; or else the logarithm of its size is uniform over one of
//     two stages, of which the lower one is far likelier, and often an integer,
//     so that powers of two stand out.
//   - Its run time: the logarithm is of one of two gamma distributions, one of short jobs
//     and one of long ones. The larger a job is the likelier it is long.
//   - When it comes: in rush hours the logarithm of the time until the next is of a gamma
//     distribution; at other hours time passes as much slower as fewer
//     jobs come then. What part of a day's jobs comes in which half of an hour is a gamma distribution, too, of a day that begins at half past five.
//
// There is one set of parameters for all jobs and one each for batch and interactive
// ones. They are for 128 processors; for others the sizes are scaled as the authors say.
//
// The model knows nothing of users, nor of how long jobs ask for: what a job asks for is
// what it takes, or up to so many times more, evenly spread, as in the f-model (Mu'alem
// and Feitelson, IEEE TPDS 12(6), 2001).
package lublin
