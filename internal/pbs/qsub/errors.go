package qsub

// RefusalError is a refusal in PBS's words, with the exit status that clients of PBS test
// for.
type RefusalError struct {
	Text       string // whole lines for stderr, "qsub: illegal -N value"
	ExitStatus int
}

func (e *RefusalError) Error() string { return e.Text }

// IsServerError reports whether OpenPBS's server would have refused, and not the command.
func (e *RefusalError) IsServerError() bool {
	return e.ExitStatus != exitScript && e.ExitStatus != ExitUsage && e.ExitStatus != exitUnreadable
}

// The exit statuses of qsub: PBS's error code modulo 256 where it has one (OpenPBS,
// pbs_error.h).
const (
	exitScript              = 1
	ExitUsage               = 2
	exitArray               = 3 // PBSE_MaxArraySize
	exitInvalidInSelect     = 4 // PBSE_INVALSELECTRESC
	exitInvalidBesideSelect = 5 // PBSE_INVALJOBRESC
	exitNodesToo            = 6 // PBSE_INVALNODEPLACE
	exitPlaceWithoutSelect  = 7 // PBSE_PLACENOSELECT
	exitUnreadable          = 8
	exitDuplicateResource   = 12  // PBSE_DUPRESC
	exitCount               = 38  // PBSE_ENTLIMCT
	exitAmount              = 39  // PBSE_ENTLIMRESC
	exitMaxWithoutMin       = 58  // PBSE_MAX_NO_MINWT
	exitMinAboveMax         = 59  // PBSE_MIN_GT_MAXWT
	exitScriptSize          = 71  // PBSE_JOBSCRIPTMAXSIZE
	exitNoAttribute         = 154 // PBSE_NOATTR
	exitNotAllowed          = 159
	exitBadHost             = 160
	exitIllegalValue        = 166
	exitNoQueue             = 170
	exitDisabled            = 173
	exitNoAccess            = 174
	exitBadUser             = 175 // PBSE_BADUSER
	exitUnknown             = 187
	exitLimits              = 188
	exitRouteRejected       = 191 // PBSE_ROUTEREJ
	exitBadGroup            = 197 // PBSE_BADGRP
	exitTooMany             = 198
	exitDependency          = 206
)

const usage = "usage: qsub [-a date_time] [-A account] [-c n|s|c|w|c=min|w=min|u] [-C prefix] [-d dir] [-e path] [-F " +
	"arguments] [-h] [-j oe|eo|n]\n" +
	"            [-J X-Y[:Z][%N]] [-k keep] [-l resources] [-m events] [-M users] [-N name] [-o path] [-p priority] " +
	"[-P project]\n" +
	"            [-q destination] [-r y|n] [-R o|e|oe] [-S shell] [-t list[%N]] [-u user] [-v variables] [-V] [-W " +
	"attributes] [-z]\n" +
	"            [--cell | --local]\n" +
	"            [script | - | -- command [arguments]]"

func usageError() *RefusalError { return &RefusalError{usage, ExitUsage} }

func IllegalValueError(option byte) *RefusalError {
	return &RefusalError{"qsub: illegal -" + string(option) + " value", ExitUsage}
}

func refusalf(text string, code int) *RefusalError { return &RefusalError{"qsub: " + text, code} }

// illegalResourceError refuses the value of a resource; why may be empty.
func illegalResourceError(name, why string) *RefusalError {
	if why != "" {
		why = ": " + why
	}
	return refusalf("Illegal attribute or resource value Resource_List."+name+why, exitIllegalValue)
}
