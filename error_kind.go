package roost

// ErrorKind says what sort of failure an error is. It is itself an error, so
// errors.Is(err, roost.NotFound) works on any error that wraps it with %w. One table maps
// kinds to gRPC codes (internal/rpc), and ExitCode maps them to what a command exits
// with.
type ErrorKind uint8

// The kinds of failure.
const (
	Internal         ErrorKind = iota + 1 // a bug, or a broken invariant
	Invalid                               // the request makes no sense, whoever sends it
	NotFound                              // what it names does not exist
	Finished                              // what it names has ended already
	Conflict                              // the thing is in a state that does not allow this
	PermissionDenied                      // the sender may not do this
	Unauthenticated                       // nobody knows who the sender is
	Exhausted                             // a bound, a limit or a quota is reached
	Unavailable                           // a daemon could not be reached or is not ready; trying again helps
	NoInput                               // a file that is to be read is not there or not readable
	NoOutput                              // a file that is to be written cannot be
	BadConfig                             // a configuration file is wrong
	Usage                                 // the command line is wrong
	Stale                                 // an old epoch, attempt, session or grant: superseded
)

var errorKinds = [...]struct {
	text string
	exit int
}{
	Internal:         {"internal error", 70},
	Invalid:          {"invalid request", 65},
	NotFound:         {"not found", 68},
	Finished:         {"already finished", 35},
	Conflict:         {"not possible in this state", 75},
	PermissionDenied: {"permission denied", 77},
	Unauthenticated:  {"not authenticated", 77},
	Exhausted:        {"limit reached", 75},
	Unavailable:      {"unavailable", 69},
	NoInput:          {"cannot read", 66},
	NoOutput:         {"cannot write", 73},
	BadConfig:        {"bad configuration", 78},
	Usage:            {"usage error", 64},
	Stale:            {"superseded", 76},
}

func (k ErrorKind) Error() string {
	if int(k) < len(errorKinds) && errorKinds[k].text != "" {
		return errorKinds[k].text
	}
	return "unknown error"
}

// ExitCode is the status with which a command ends after an error of this kind, as
// sysexits.h assigns them where it has a fitting one.
func (k ErrorKind) ExitCode() int {
	if int(k) < len(errorKinds) && errorKinds[k].exit != 0 {
		return errorKinds[k].exit
	}
	return 70
}
