package roost

// ErrorKind classifies an error. It is itself an error, so errors.Is(err, roost.NotFound)
// works on any error that wraps it with %w. One table maps kinds to gRPC codes
// (internal/rpc), and ExitCode maps them to exit codes of commands.
type ErrorKind uint8

// The kinds of error.
const (
	Internal         ErrorKind = iota + 1 // a bug, or a broken invariant
	Invalid                               // the request makes no sense, from any sender
	NotFound                              // the object of the request does not exist
	Finished                              // the object of the request has ended already
	Conflict                              // the state of the object does not allow the request
	PermissionDenied                      // the sender is known and may not do this
	Unauthenticated                       // the sender is unknown
	Exhausted                             // a bound, a limit or a quota is reached
	Unavailable                           // a daemon could not be reached or is not ready; trying again helps
	NoInput                               // an input file does not exist or is not readable
	NoOutput                              // an output file cannot be written
	BadConfig                             // a configuration file is wrong
	Usage                                 // the command line is wrong
	Stale                                 // the message has an old epoch, attempt, session or grant
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

// ExitCode returns the exit code of a command after an error of this kind. Codes are
// those of sysexits.h where it has a fitting one.
func (k ErrorKind) ExitCode() int {
	if int(k) < len(errorKinds) && errorKinds[k].exit != 0 {
		return errorKinds[k].exit
	}
	return 70
}
