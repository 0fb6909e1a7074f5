package pbs

// Error is a refusal in PBS's own words, with the exit status that clients of PBS test for.
type Error struct {
	Text string // whole lines for stderr, "qsub: illegal -N value"
	Code int
}

func (e *Error) Error() string { return e.Text }

// The exit statuses of qsub: PBS's error code modulo 256 where it has one.
const (
	exitScript       = 1
	exitUsage        = 2
	exitArray        = 3 // PBSE_MaxArraySize
	exitUnreadable   = 8
	exitCount        = 38 // PBSE_ENTLIMCT
	exitAmount       = 39 // PBSE_ENTLIMRESC
	exitNoAttribute  = 154
	exitNotAllowed   = 159
	exitBadHost      = 160
	exitIllegalValue = 166
	exitNoQueue      = 170
	exitDisabled     = 173
	exitNoAccess     = 174
	exitBadUser      = 175
	exitUnknown      = 187
	exitLimits       = 188
	exitNowhere      = 191 // PBSE_ROUTEREJ
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
