package dag

import (
	"strings"
	"testing"
)

// badLine is a line that is refused, what the diagnostic says, and the word that it
// marks.
type badLine struct{ line, summary, marked string }

// badLines are lines that are refused each by itself. The nodes a and b, FINAL f and the
// splice s are defined.
func badLines() []badLine {
	return []badLine{
		{"JOB", "JOB has no name of a node", ""},
		{"job x", "JOB has no file with a submit description", ""},
		{"JOB all_nodes d", `a node cannot be called "all_nodes"`, "all_nodes"},
		{"JOB PARENT d", `a node cannot be called "PARENT"`, "PARENT"},
		{"NODE Child d", `a node cannot be called "Child"`, "Child"},
		{"JOB x+y d", "a node's name cannot have a +", "x+y"},
		{`JOB "x y" d`, "a node's name cannot have a blank", `"x y"`},
		{`JOB "" d`, "the name of the node is empty", `""`},
		{"JOB a d", `the node "a" is defined twice`, "a"},
		{"JOB s d", `there is a splice "s" already`, "s"},
		{"JOB x1 d more", `"more" is one word too many`, "more"},
		{"JOB x2 d DIR", "JOB has no directory behind DIR", ""},
		{"JOB x3 d NOOP DONE DIR e more", `"more" is one word too many`, "more"},
		{"JOB x4 @=", "@= has no word that ends the description", "@="},
		{`JOB x5 "d`, "this text has no closing quote", `"d`},
		{"SUBDAG", "SUBDAG is not followed by EXTERNAL", ""},
		{"SUBDAG x d", "SUBDAG is not followed by EXTERNAL", "x"},
		{"SUBDAG EXTERNAL", "SUBDAG has no name of a node", ""},
		{"SUBDAG EXTERNAL x6", "SUBDAG has no DAG file", ""},
		{"SUBDAG EXTERNAL x7 d NOOP more", `"more" is one word too many`, "more"},
		{"FINAL", "FINAL has no name of a node", ""},
		{"FINAL x8 d", "this is the second FINAL node", "x8"},
		{"PROVISIONER", "PROVISIONER has no name of a node", ""},
		{"PROVISIONER p+q d", "a node's name cannot have a +", "p+q"},
		{"SERVICE", "SERVICE has no name of a node", ""},
		{"SERVICE x9", "SERVICE has no file with a submit description", ""},
		{"SERVICE x10 d DIR", "SERVICE has no directory behind DIR", ""},
		{"SUBMIT-DESCRIPTION", "SUBMIT-DESCRIPTION has no name of the submit description", ""},
		{"SUBMIT_DESCRIPTION x", "SUBMIT-DESCRIPTION has no submit description", ""},
		{"SUBMIT-DESCRIPTION y file", "the submit description does not begin with {", "file"},
		{"SPLICE", "SPLICE has no name of the splice", ""},
		{"SPLICE y11", "SPLICE has no DAG file", ""},
		{"SPLICE y12 s.dag DIR", "SPLICE has no directory behind DIR", ""},
		{"SPLICE y13 s.dag more", `"more" is one word too many`, "more"},
		{"SPLICE y14 s.dag DIR d more", `"more" is one word too many`, "more"},
		{"SPLICE s s.dag", `the splice "s" is defined twice`, "s"},
		{"SPLICE a s.dag", `there is a node "a" already`, "a"},
		{"SPLICE parent s.dag", `a node cannot be called "parent"`, "parent"},
		{"SPLICE y15 none.dag", `the file "none.dag" cannot be read`, "none.dag"},
		{"SPLICE y16 bad.dag", "this file is within itself", "bad.dag"},
		{"INCLUDE", "INCLUDE has no file", ""},
		{"INCLUDE s.dag more", `"more" is one word too many`, "more"},
		{"INCLUDE none.dag", `the file "none.dag" cannot be read`, "none.dag"},
		{"INCLUDE bad.dag", "this file is within itself", "bad.dag"},
		{"PARENT", "PARENT has no name of a node", ""},
		{"PARENT CHILD a", "PARENT has no name of a node", "CHILD"},
		{"PARENT a b", "the word CHILD is missing behind the parents", ""},
		{"PARENT a CHILD", "CHILD has no name of a node", ""},
		{"PARENT a CHILD b CHILD b", "there are two words CHILD", "CHILD"},
		{"PARENT none CHILD a", `these nodes are not defined, parents: "none"`, "none"},
		{"PARENT a CHILD x0 b x00", `these nodes are not defined, children: "x0", "x00"`, "x0"},
		{"PARENT none a CHILD b no", `these nodes are not defined, parents: "none"; children: "no"`, "none"},
		{"PARENT a CHILD f", "a FINAL node cannot have dependencies", "f"},
		{"WEAK", "WEAK is not followed by PARENT", ""},
		{"WEAK a CHILD b", "WEAK is not followed by PARENT", "a"},
		{"WEAK PARENT a CHILD", "CHILD has no name of a node", ""},
		{"SCRIPT", "SCRIPT does not say PRE, POST or HOLD", ""},
		{"SCRIPT a e", `"a" is none of PRE, POST, HOLD, DEFER and DEBUG`, "a"},
		{"SCRIPT DEFER", "SCRIPT has no exit code of DEFER", ""},
		{"SCRIPT DEFER x", `"x" is no exit code of DEFER`, "x"},
		{"SCRIPT DEFER 1", "SCRIPT has no number of seconds of DEFER", ""},
		{"SCRIPT DEFER 1 x", `"x" is no number of seconds of DEFER`, "x"},
		{"SCRIPT DEFER 1 -2 PRE a e", `"-2" is no number of seconds of DEFER`, "-2"},
		{"SCRIPT DEBUG", "SCRIPT has no file of DEBUG", ""},
		{"SCRIPT DEBUG f", "SCRIPT has no output of DEBUG", ""},
		{"SCRIPT DEBUG f some PRE a e", `"some" is none of STDOUT, STDERR and ALL`, "some"},
		{"SCRIPT PRE", "SCRIPT has no name of a node", ""},
		{"SCRIPT POST a", "SCRIPT has no executable", ""},
		{"SCRIPT HOLD a   ", "SCRIPT has no executable", ""},
		{"SCRIPT PRE s e", "SCRIPT cannot be applied to a splice", "s"},
		{"PRE_SKIP", "PRE_SKIP has no name of a node", ""},
		{"PRE-SKIP a", "PRE_SKIP has no exit code", ""},
		{"PRE_SKIP a x", `"x" is no exit code`, "x"},
		{"PRE_SKIP a 0", "PRE_SKIP cannot be for 0", "0"},
		{"PRE_SKIP a 1 more", `"more" is one word too many`, "more"},
		{"RETRY", "RETRY has no name of a node", ""},
		{"RETRY a", "RETRY has no number of retries", ""},
		{"RETRY a x", `"x" is no number of retries`, "x"},
		{"RETRY a -1", `"-1" is no number of retries`, "-1"},
		{"RETRY a 1 more", `"more" is one word too many`, "more"},
		{"RETRY a 1 UNLESS-EXIT", "RETRY has no exit code", ""},
		{"RETRY a 1 UNLESS-EXIT x", `"x" is no exit code`, "x"},
		{"RETRY a 1 UNLESS-EXIT 1 more", `"more" is one word too many`, "more"},
		{"RETRY s 1", "RETRY cannot be applied to a splice", "s"},
		{"RETRY f 1", "RETRY cannot be applied to the FINAL node", "f"},
		{"RETRY A 1", `there is no node "A"`, "A"},
		{"ABORT-DAG-ON", "ABORT-DAG-ON has no name of a node", ""},
		{"ABORT_DAG_ON a", "ABORT-DAG-ON has no exit code", ""},
		{"ABORT-DAG-ON a x", `"x" is no exit code`, "x"},
		{"ABORT-DAG-ON a 1 more", `"more" is one word too many`, "more"},
		{"ABORT-DAG-ON a 1 RETURN", "ABORT-DAG-ON has no exit code of the flow", ""},
		{"ABORT-DAG-ON a 1 RETURN 256", `"256" is no exit code of the flow`, "256"},
		{"ABORT-DAG-ON a 1 RETURN -1", `"-1" is no exit code of the flow`, "-1"},
		{"ABORT-DAG-ON a 1 RETURN 1 more", `"more" is one word too many`, "more"},
		{"TOLERANCE", "TOLERANCE has no name of a node", ""},
		{"TOLERANCE a", "TOLERANCE has no number of failed jobs", ""},
		{"TOLERANCE a some", `"some" is no number of failed jobs`, "some"},
		{"TOLERANCE a 101%", `"101" is no share in percent`, "101%"},
		{"TOLERANCE a 1 more", `"more" is neither FAIL-FAST nor WAIT`, "more"},
		{"TOLERANCE a 1 WAIT more", `"more" is one word too many`, "more"},
		{"VARS", "VARS has no name of a node", ""},
		{"VARS a", "VARS has no variables", ""},
		{"VARS a x", `"x" has no value`, "x"},
		{"VARS a x=", `"x" has no value`, ""},
		{"VARS a =1", "the name before the = is missing", "="},
		{"VARS a +=1", "the name behind the + is missing", "+"},
		{"VARS a Queue_x=1", `a variable cannot be called "Queue_x"`, "Queue_x"},
		{`VARS a x="1`, "this text has no closing quote", `"1`},
		{"VARS s x=1", "VARS cannot be applied to a splice", "s"},
		{"PRIORITY", "PRIORITY has no name of a node", ""},
		{"PRIORITY a", "PRIORITY has no priority", ""},
		{"PRIORITY a x", `"x" is no priority`, "x"},
		{"PRIORITY a 1 more", `"more" is one word too many`, "more"},
		{"CATEGORY", "CATEGORY has no name of a node", ""},
		{"CATEGORY a", "CATEGORY has no name of a category", ""},
		{"CATEGORY a c more", `"more" is one word too many`, "more"},
		{"MAXJOBS", "MAXJOBS has no name of a category", ""},
		{"MAXJOBS c", "MAXJOBS has no number of jobs", ""},
		{"MAXJOBS c x", `"x" is no number of jobs`, "x"},
		{"MAXJOBS c -1", `"-1" is no number of jobs`, "-1"},
		{"MAXJOBS c 1 more", `"more" is one word too many`, "more"},
		{"DONE", "DONE has no name of a node", ""},
		{"DONE ALL_NODES", "DONE is not for ALL_NODES", "ALL_NODES"},
		{"DONE a more", `"more" is one word too many`, "more"},
		{"REJECT more", `"more" is one word too many`, "more"},
		{"REJECT", "this file is marked with REJECT", "REJECT"},
		{"DOT", "DOT has no file", ""},
		{"DOT f more", `"more" is one word too many`, "more"},
		{"DOT f INCLUDE", "DOT has no file behind INCLUDE", ""},
		{"NODE_STATUS_FILE", "NODE_STATUS_FILE has no file", ""},
		{"NODE_STATUS_FILE f more", `"more" is no number of seconds`, "more"},
		{"JOBSTATE_LOG", "JOBSTATE_LOG has no file", ""},
		{"JOBSTATE_LOG f more", `"more" is one word too many`, "more"},
		{"SAVE_POINT_FILE", "SAVE_POINT_FILE has no name of a node", ""},
		{"SAVE-POINT-FILE a f more", `"more" is one word too many`, "more"},
		{"SET_JOB_ATTR", "SET_JOB_ATTR has no attribute", ""},
		{"SET_JOB_ATTR x", "this is no NAME = VALUE", "x"},
		{"ENV", "ENV has no SET or GET", ""},
		{"ENV both", `"both" is neither SET nor GET`, "both"},
		{"ENV SET", "ENV names no variables", ""},
		{"ENV GET   ", "ENV names no variables", ""},
		{"CONFIG", "CONFIG has no file", ""},
		{"CONFIG f more", `"more" is one word too many`, "more"},
		{"PIN_IN", "PIN_IN has no name of a node", ""},
		{"PIN_OUT a", "PIN_OUT has no number of a pin", ""},
		{"PIN_IN a x", `"x" is no number of a pin`, "x"},
		{"PIN_IN a 0", `"0" is no number of a pin`, "0"},
		{"PIN_OUT a 1 more", `"more" is one word too many`, "more"},
		{"CONNECT", "CONNECT has no two splices", ""},
		{"CONNECT s", "CONNECT has no two splices", ""},
		{"CONNECT s s more", `"more" is one word too many`, "more"},
		{"CONNECT s a", `there is no splice "a"`, "a"},
		{"RETYR a 3", `there is no command "RETYR"`, "RETYR"},
		{"= a", `there is no command "="`, "="},
	}
}

// TestBadLines holds that every bad line of a file is reported in one run. Each report
// has its place, what is wrong, and a remedy.
func TestBadLines(t *testing.T) {
	lines := []string{"JOB a d", "JOB b d", "FINAL f d", "SPLICE s s.dag", ""}
	first := len(lines)
	bad := badLines()
	for _, b := range bad {
		lines = append(lines, b.line)
	}
	files := textFiles{"bad.dag": strings.Join(lines, "\n"), "s.dag": "JOB n d"}
	_, diags := Parse(files, []string{"bad.dag"}, ParseOptions{SkipFileTests: true})
	byLine := map[int][]Diagnostic{}
	for _, d := range diags.List {
		byLine[d.Line] = append(byLine[d.Line], d)
	}
	for i, b := range bad {
		number := first + i + 1
		var errors []Diagnostic
		for _, d := range byLine[number] {
			if !d.IsWarning {
				errors = append(errors, d)
			}
		}
		if len(errors) != 1 {
			t.Errorf("line %d, %s: got %v, want one error", number, b.line, errors)
			continue
		}
		d := errors[0]
		marked := ""
		if at := d.Column - 1; at < len(d.Source) {
			marked = d.Source[at:min(at+d.Width, len(d.Source))]
		}
		if d.Summary != b.summary || d.File != "bad.dag" || d.Detail == "" || d.Source != b.line || marked != b.marked {
			t.Errorf("line %d, %s: got %+v, marked %q", number, b.line, d, marked)
		}
		if _, known := findName(d.Command); !known && !strings.Contains(d.Summary, "no command") {
			t.Errorf("line %d, %s: the command is %q", number, b.line, d.Command)
		}
	}
	if len(bad) < 115 || diags.Errors != len(bad) {
		t.Errorf("%d errors of %d lines, want 115 at least", diags.Errors, len(bad))
	}
}

func findName(name string) (*dagCommand, bool) {
	c := findCommand(commandTable(), []byte(name))
	return c, c != nil && c.displayName() == name
}
