// Package lublin generates logs of jobs by the model of Lublin and Feitelson (The
// Workload on Parallel Supercomputers: Modeling the Characteristics of Rigid Jobs,
// Journal of Parallel and Distributed Computing 63(11), 2003), which is fitted to logs of
// the nineties. Use it where there is no log, or where another size or load is needed. It
// is pure: a seed gives one log, on every processor.
//
// The model draws three things for each job.
//
//   - Its size. The job is serial, or the logarithm of its size is uniform over one of
//     two stages. The lower stage is far likelier. The logarithm is often an integer, so
//     powers of two are frequent.
//   - Its run time. The logarithm is of one of two gamma distributions, one of short jobs
//     and one of long jobs. The larger a job is, the likelier it is long.
//   - Its arrival. In rush hours the logarithm of the time to the next arrival is of a
//     gamma distribution; at other hours time passes more slowly, in proportion to the
//     arrivals of that hour. The part of a day's jobs that arrives in each half hour is a
//     gamma distribution, too, of a day that begins at half past five.
//
// There is one set of parameters for all jobs, and one each for batch and interactive
// jobs. They are for 128 processors; sizes for other machines are scaled as the authors
// say.
//
// The model knows neither users nor requested times. A job asks for its run time, or for
// up to a factor more, uniformly distributed, as in the f-model (Mu'alem and Feitelson,
// IEEE TPDS 12(6), 2001).
package lublin
