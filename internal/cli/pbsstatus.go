package cli

// The exit statuses that clients of PBS test for: PBS's error number modulo 256.
const (
	pbsEndedSubjob        = 55
	pbsUnknownJob         = 153
	pbsInvalid            = 156
	pbsFinished           = 35
	pbsUnauthorized       = 159
	pbsSystem             = 162
	pbsBadSignal          = 165
	pbsBadValue           = 166
	pbsRuns               = 167
	pbsBadState           = 168
	pbsUnknownQueue       = 170
	pbsNoSupport          = 181
	pbsUnknownResource    = 187
	pbsNoRerun            = 190
	pbsTooMany            = 198
	pbsDependency         = 206
	pbsUnknownReservation = 236
	pbsUnconnected        = 255
)
