package pbs

// Error is a refusal in PBS's own words, with the exit status that clients of PBS test for.
type Error struct {
	Text string // whole lines for stderr, "qsub: illegal -N value"
	Code int
}

func (e *Error) Error() string { return e.Text }

// ofServer reports whether it is OpenPBS's server that would have refused, and not the command.
func (e *Error) ofServer() bool {
	return e.Code != exitScript && e.Code != exitUsage && e.Code != exitUnreadable
}

// The exit statuses of qsub: PBS's error code modulo 256 where it has one (OpenPBS, pbs_error.h).
const (
	exitScript       = 1
	exitUsage        = 2
	exitArray        = 3 // PBSE_MaxArraySize
	exitInSelect     = 4 // PBSE_INVALSELECTRESC
	exitBesideSelect = 5 // PBSE_INVALJOBRESC
	exitNodesToo     = 6 // PBSE_INVALNODEPLACE
	exitPlaceOnly    = 7 // PBSE_PLACENOSELECT
	exitUnreadable   = 8
	exitTwice        = 12  // PBSE_DUPRESC
	exitCount        = 38  // PBSE_ENTLIMCT
	exitAmount       = 39  // PBSE_ENTLIMRESC
	exitNoLeast      = 58  // PBSE_MAX_NO_MINWT
	exitLeastTooMuch = 59  // PBSE_MIN_GT_MAXWT
	exitScriptSize   = 71  // PBSE_JOBSCRIPTMAXSIZE
	exitNoAttribute  = 154 // PBSE_NOATTR
	exitNotAllowed   = 159
	exitBadHost      = 160
	exitIllegalValue = 166
	exitNoQueue      = 170
	exitDisabled     = 173
	exitNoAccess     = 174
	exitBadUser      = 175 // PBSE_BADUSER
	exitUnknown      = 187
	exitLimits       = 188
	exitNowhere      = 191 // PBSE_ROUTEREJ
	exitBadGroup     = 197 // PBSE_BADGRP
	exitTooMany      = 198
	exitDependency   = 206
)

const usage = "usage: qsub [-a date_time] [-A account] [-c n|s|c|w|c=min|w=min|u] [-C prefix] [-d dir] [-e path] [-F arguments] [-h] [-j oe|eo|n]\n" +
	"            [-J X-Y[:Z][%N]] [-k keep] [-l resources] [-m events] [-M users] [-N name] [-o path] [-p priority] [-P project]\n" +
	"            [-q destination] [-r y|n] [-R o|e|oe] [-S shell] [-t list[%N]] [-u user] [-v variables] [-V] [-W attributes] [-z]\n" +
	"            [script | - | -- command [arguments]]"

func usageError() *Error { return &Error{usage, exitUsage} }

func illegal(option byte) *Error {
	return &Error{"qsub: illegal -" + string(option) + " value", exitUsage}
}

func refuse(text string, code int) *Error { return &Error{"qsub: " + text, code} }

// illegalResource refuses the value of a resource; why may be empty.
func illegalResource(name, why string) *Error {
	if why != "" {
		why = ": " + why
	}
	return refuse("Illegal attribute or resource value Resource_List."+name+why, exitIllegalValue)
}
