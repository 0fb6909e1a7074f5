package negotiator

// The types below are the parts of a leader's work. Each has one concern and all the
// fields of the state: it is one pointer, made where it is called.

// grantTracker follows each grant from its proposal to the claim or the refusal.
type grantTracker struct{ *leaderState }

// blackHoleDetector drains machines that fail what others run, and avoids pairs.
type blackHoleDetector struct{ *leaderState }

// admissionChecker answers schedds that ask whether quotas and queues admit a job.
type admissionChecker struct{ *leaderState }

func (c *leaderState) grants() grantTracker { return grantTracker{c} }

func (c *leaderState) blackHoleDrains() blackHoleDetector { return blackHoleDetector{c} }

func (c *leaderState) admission() admissionChecker { return admissionChecker{c} }
