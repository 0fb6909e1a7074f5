package qsub

// pathSetter reads the options that name where a job's output goes.
type pathSetter struct{ *JobSubmission }

func (s *JobSubmission) paths() pathSetter { return pathSetter{s} }
