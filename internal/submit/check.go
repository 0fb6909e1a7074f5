package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// checkKinds and checkSettings are the settings of a check block.
var (
	checkKinds    = []string{"http", "tcp", "exec"}
	checkSettings = append([]string{"port", "for", "every", "timeout", "fails", "passes", "start_within", "method",
		"headers"}, checkKinds...)
)

const (
	checkExample  = "check \"up\" { http = \"/\" }"
	checkNameHint = "A name has small letters, digits and single hyphens, begins with a letter, and has at most 15 " +
		"characters: " + checkExample + "."
	checkKindHint = "Write http = \"/\" for a request, tcp = true for a connection, or exec = [\"program\", " +
		"\"argument\"] for a command in the task's sandbox."
	checkForHint = "It is \"ready\" (a task that fails gets no work) or \"live\" (a task that fails is started again)."
)

// readChecks reads the check blocks: how the machine of a task finds out whether it
// works.
func (b *jobBuilder) readChecks() {
	var list []classad.Value
	lines := map[string]int{}
	for _, block := range b.body.Blocks {
		if block.Type != "check" {
			continue
		}
		if !b.isService() {
			b.reportProblem(block.TypeRange, "a check is for a service",
				"A task of a batch job ends by itself, and its exit code says how it went. Add service { }, or remove "+
					"the check.")
			return
		}
		if len(list) == roost.MaxChecks {
			b.reportProblem(block.DefRange(), "there are too many checks",
				fmt.Sprintf("A task has at most %d. One check can ask for several things.", roost.MaxChecks))
			return
		}
		if ad := b.readCheck(block, lines); ad != nil {
			list = append(list, classad.AdOf(ad))
		}
	}
	if len(list) > 0 {
		b.ad.SetValue(roost.AttrChecks, classad.ListValue(list...))
	}
}

// readCheck reads one block; nil when it has a mistake. lines has where the checks so far
// are.
func (b *jobBuilder) readCheck(block *hclsyntax.Block, lines map[string]int) *classad.Ad {
	if len(block.Labels) != 1 {
		b.reportProblem(block.TypeRange, "a check has one name",
			"Write it in quotes behind the word: "+checkExample+".")
		return nil
	}
	name, at := block.Labels[0], block.LabelRanges[0]
	line, twice := lines[name]
	switch {
	case roost.CheckCheckName(name) != nil:
		b.reportProblem(at, fmt.Sprintf("%q cannot be the name of a check", truncateText(name)), checkNameHint)
		return nil
	case twice:
		b.reportProblem(at, fmt.Sprintf("there are two checks called %q", name),
			fmt.Sprintf("The other one is on line %d. Give one of them another name.", line))
		return nil
	}
	lines[name] = at.Start.Line
	if !b.parser.refuseUnknown(block, "a check", checkSettings, nil) {
		return nil
	}
	ad, before := classad.New(), len(b.parser.diags)
	ad.SetString(roost.AttrName, name)
	inner := checkReader{b.inBlock(block), ad, b.portNames()}
	inner.readKind()
	inner.readPort()
	inner.readTimes()
	inner.readCounts()
	if len(b.parser.diags) > before {
		return nil
	}
	return ad
}

// checkReader reads one check block.
type checkReader struct {
	*jobBuilder
	check *classad.Ad
	ports []string // names of those of the job
}

// readKind reads what is asked.
func (b checkReader) readKind() {
	var kind string
	for _, k := range checkKinds {
		a := b.body.Attributes[k]
		switch {
		case a == nil:
		case kind != "":
			b.reportProblem(a.NameRange, fmt.Sprintf("a check is either %s or %s", kind, k),
				"Make two checks of it, each with a name of its own.")
			return
		default:
			kind = k
		}
	}
	b.check.SetString(roost.AttrCheckKind, kind)
	switch kind {
	case "":
		b.reportProblem(b.block.TypeRange, "it is not said what the check asks", checkKindHint)
	case "http":
		b.readHTTP()
	case "tcp":
		if on, ok := b.constantBool("tcp"); ok && !on {
			b.reportProblem(b.body.Attributes["tcp"].Expr.Range(), "tcp can only be true", checkKindHint)
		}
	case "exec":
		b.readExec()
	}
	for _, name := range []string{"method", "headers"} {
		if a := b.body.Attributes[name]; a != nil && kind != "http" {
			b.reportProblem(a.NameRange, name+" is for HTTP", "Remove it, or write http = \"/\".")
		}
	}
}

// readHTTP reads the request of an HTTP check.
func (b checkReader) readHTTP() {
	path, at, ok := b.constantText("http", "It is the path that is asked for: http = \"/health\".")
	if ok && b.isRequestPath(path, at, "http") {
		b.check.SetString(roost.AttrCheckPath, path)
	}
	if method, at, ok := b.constantText("method", "It is \"GET\" or \"HEAD\"."); ok {
		if method != "GET" && method != "HEAD" {
			b.reportProblem(at, fmt.Sprintf("a check does not ask with %q", truncateText(method)),
				"It is \"GET\" or \"HEAD\": a check must change nothing.")
		}
		b.check.SetString(roost.AttrCheckMethod, method)
	}
	b.readHeaders()
}

// isRequestPath reports a path that cannot be asked for.
func (b *jobBuilder) isRequestPath(path string, at hcl.Range, name string) bool {
	if err := roost.CheckRequestPath(path); err != nil {
		b.reportProblem(at, fmt.Sprintf("%q is not a path of HTTP", truncateText(path)),
			fmt.Sprintf("It begins with \"/\", is on one line and has no spaces: %s = \"/health\". The machine and "+
				"the port are known.", name))
		return false
	}
	return true
}

func (b checkReader) readHeaders() {
	v, at, ok := b.constantValue("headers")
	if !ok {
		return
	}
	const hint = "Write headers = { Host = \"hub.example.org\" }."
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		b.reportProblem(at, "headers has to be names with values", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return
	}
	var list []string
	for name, value := range v.AsValueMap() {
		if value.IsNull() || value.Type() != cty.String || roost.CheckHeader(name, value.AsString()) != nil {
			b.reportProblem(at, fmt.Sprintf("the header %q cannot be sent", truncateText(name)),
				"A name has letters, digits and hyphens, and a value is a text on one line. "+hint)
			return
		}
		list = append(list, name+": "+value.AsString())
	}
	slices.Sort(list)
	b.check.SetStrings(roost.AttrCheckHeaders, list)
}

// readExec reads the command of an exec check.
func (b checkReader) readExec() {
	v, at, ok := b.constantValue("exec")
	if !ok {
		return
	}
	const hint = "Write the program and its arguments: exec = [\"pg_isready\", \"-q\"]. A command line is " +
		"exec = [\"sh\", \"-c\", \"…\"]."
	if v.Type() == cty.String {
		b.reportProblem(at, "exec has to be a list", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return
	}
	list, ok := b.taskReader().listElements(v, at, "exec")
	if !ok {
		return
	}
	if len(list) == 0 || list[0] == "" {
		b.reportProblem(at, "exec names no program", hint)
		return
	}
	b.check.SetStrings(roost.AttrCheckCommand, list)
}

// readPort reads to which port of the task a check connects. It need not be said of a
// task with one port.
func (b checkReader) readPort() {
	kind, _ := b.check.Str(roost.AttrCheckKind)
	name, at, isNamed := b.constantText("port", "It is the name of a port of the job: port = \"http\".")
	switch ports := b.ports; {
	case kind == "exec":
		if isNamed {
			b.reportProblem(at, "port is for checks that connect",
				"Remove it: a command finds the number in $ROOST_PORT_NAME.")
		}
	case kind == "":
	case isNamed && !slices.Contains(ports, name):
		b.reportProblem(at, fmt.Sprintf("there is no port %q in this job", truncateText(name)),
			fmt.Sprintf("Ask for it: port %q {}.", truncateText(name))+nearestHint(name, ports))
	case isNamed:
		b.check.SetString(roost.AttrCheckPort, name)
	case len(ports) == 1:
		b.check.SetString(roost.AttrCheckPort, ports[0])
	case len(ports) == 0:
		b.reportProblem(b.block.TypeRange, "the job has no port that a check can connect to",
			"Ask for one: port \"http\" {}. Its number is in $ROOST_PORT_HTTP.")
	default:
		b.reportProblem(b.block.TypeRange, "it is not said to which port the check connects",
			"The job has several: add port = "+fmt.Sprintf("%q", ports[0])+".")
	}
}

// portNames are the names of the job's port blocks.
func (b *jobBuilder) portNames() (names []string) {
	for _, block := range b.body.Blocks {
		if block.Type == "port" && len(block.Labels) == 1 {
			names = append(names, block.Labels[0])
		}
	}
	return names
}

// readTimes reads when a check is run, and how long it may take.
func (b checkReader) readTimes() {
	every := roost.DefaultCheckEvery
	if d, _, ok := b.resourceReader().constantDuration("every", roost.MinCheckEvery); ok {
		every = d
		b.check.SetReal(roost.AttrCheckEvery, d.Seconds())
	}
	if d, at, ok := b.resourceReader().constantDuration("timeout", roost.MinCheckTimeout); ok {
		if d > every {
			b.reportProblem(at, "timeout is longer than every",
				fmt.Sprintf("The check is run every %v, and may not take %v: the next one would be due. Make timeout "+
					"shorter, or every longer.", every, d))
		}
		b.check.SetReal(roost.AttrCheckTimeout, d.Seconds())
	}
	if d, at, ok := b.resourceReader().constantDuration("start_within", 0); ok {
		if d > roost.MaxCheckStart {
			b.reportProblem(at, "start_within is too long",
				fmt.Sprintf("It is %v, and can be at most %v: a task that never works would seem to start.", d,
					roost.MaxCheckStart))
		}
		b.check.SetReal(roost.AttrCheckStartWithin, d.Seconds())
	}
}

// readCounts reads what the check is for, and how many results decide.
func (b checkReader) readCounts() {
	for _, c := range []struct{ name, attribute, hint string }{
		{"fails", roost.AttrCheckFails, "So many failures in a row mean that the task does not work: fails = 3."},
		{"passes", roost.AttrCheckPasses, "So many passes in a row mean that it works: passes = 1."},
	} {
		if n, ok := b.constantInt(c.name, 1, roost.MaxCheckCount, c.hint); ok {
			b.check.SetInt(c.attribute, n)
		}
	}
	if s, at, ok := b.constantText("for", checkForHint); ok {
		if s != roost.CheckForReady && s != roost.CheckForLive {
			b.reportProblem(at, fmt.Sprintf("a check cannot be for %q", truncateText(s)),
				checkForHint+nearestHint(s, []string{roost.CheckForReady, roost.CheckForLive}))
		}
		b.check.SetString(roost.AttrCheckFor, s)
	}
}

// readStop reads how a task of a service is stopped, before SIGTERM.
func (b *jobBuilder) readStop(job *jobBuilder, ad *classad.Ad) {
	if d, at, ok := b.resourceReader().constantDuration("drain", 0); ok {
		if d > roost.MaxDrain {
			b.reportProblem(at, "drain is too long", fmt.Sprintf("It is %v, and can be at most %v.", d, roost.MaxDrain))
		}
		ad.SetReal(roost.AttrDrain, d.Seconds())
	}
	path, at, hasURL := b.constantText("stop_url", "It is the path of a POST before SIGTERM: stop_url = \"/quit\".")
	if hasURL && b.isRequestPath(path, at, "stop_url") {
		ad.SetString(roost.AttrStopURL, path)
	}
	port, portAt, named := b.constantText("stop_port", "It is the name of the port for stop_url: stop_port = \"http\".")
	switch ports := job.portNames(); {
	case named && !hasURL:
		b.reportProblem(portAt, "stop_port means nothing without stop_url", "Add stop_url = \"/quit\", or remove it.")
	case named && !slices.Contains(ports, port):
		b.reportProblem(portAt, fmt.Sprintf("there is no port %q in this job", truncateText(port)),
			fmt.Sprintf("Ask for it: port %q {}.", truncateText(port))+nearestHint(port, ports))
	case named:
		ad.SetString(roost.AttrStopPort, port)
	case hasURL && len(ports) == 1:
		ad.SetString(roost.AttrStopPort, ports[0])
	case hasURL && len(ports) == 0:
		b.reportProblem(at, "the job has no port for stop_url", "Ask for one: port \"http\" {}.")
	case hasURL:
		b.reportProblem(at, "it is not said on which port stop_url is",
			fmt.Sprintf("The job has several: add stop_port = %q.", strings.Join(ports[:1], "")))
	}
}
