// Package autoscale decides how many tasks a service is to have, from what its tasks are
// measured to do. It is pure: the queue hands in the measurements and the time, and
// carries out what [Decide] returns.
//
// The naive way divides the load by the target at each measurement. Then the number of
// tasks follows each spike, a metric that is missing for a moment stops half of the
// tasks, and tasks that were just started count as if they took their part. Users of
// Kubernetes' HorizontalPodAutoscaler know the cures, and they are the same here (its
// documentation, "Algorithm details" and "Configurable scaling behavior"):
//
//	average = sum of the measured tasks / their number
//	wanted  = ceil(sum / target)                       if average / target is outside
//	          the present count                        1 - tolerance .. 1 + tolerance
//
// Tasks that are not ready are left out of the sum. To grow they and ready tasks without
// a measurement count as tasks that do nothing, so that the present tasks are believed
// to take more than they do; when the ratio is within the tolerance then, nothing
// changes. With a measurement missing the service does not shrink at all, which is
// stricter than there.
//
//	min <= count <= max                                always
//	to shrink: the highest number wanted within the window down
//	to grow:   the lowest number wanted within the window up
//	in each period at most so many tasks are added, or stopped
//
// Tasks with the highest indexes are stopped, because an index is a name. A service never
// shrinks so far that fewer ready tasks are left than are wanted: as long as a task with
// a low index is not ready, one with a high index stays in its place.
package autoscale
