// Package restart says when a task of a service that ended is started again, and whether
// on the same machine. It is pure: the wait depends on the task, the attempt and what
// went before, and on no clock and no random source, so a replay of the log makes the
// same waits.
//
// A constant wait would either let a program that fails at once occupy its machine and
// the log, or keep one that failed by chance away for long. So the wait doubles with each
// end of a task that came early, up to a bound, and begins anew after the task was ready
// for a while. The first early end waits too: a back-off whose first step is skipped
// makes a pair of starts for each fault (kubernetes issue 133472). And the bound belongs
// to the job (kubernetes issue 57291).
package restart
