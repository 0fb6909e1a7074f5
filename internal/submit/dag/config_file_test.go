package dag

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
)

// configFiles has one file.
type configFiles string

func (c configFiles) Open(name string) (io.ReadCloser, error) {
	if name != "c" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(strings.NewReader(string(c))), nil
}

func (c configFiles) Exists(name string) bool { return name == "c" }

// TestReadConfig checks what a CONFIG file sets, and what is said of the rest.
func TestReadConfig(t *testing.T) {
	number := func(p *int) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	boolean := func(p *bool) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	for text, want := range map[string]string{
		"":        "- - - - - - - -",
		"# x\n\n": "- - - - - - - -",
		"DAGMAN_MAX_JOBS_SUBMITTED = 5\ndagman_max_jobs_idle=\\\n 7\nDAGMAN_MAX_PRE_SCRIPTS=0\n" +
			"DAGMAN_MAX_POST_SCRIPTS = 3": "5 7 0 3 - - - -",
		"DAGMAN_ALWAYS_RUN_POST = True\nDAGMAN_SUBMIT_DEPTH_FIRST=no\nDAGMAN_DEFAULT_APPEND_VARS = 1\n" +
			"DAGMAN_AUTO_RESCUE = F": "- - - - true false true false",
		"DAGMAN_MAX_JOBS_SUBMITTED = many": `c:1: DAGMAN_MAX_JOBS_SUBMITTED is "many", and is to be a number from ` +
			"0 on",
		"\nDAGMAN_ALWAYS_RUN_POST = perhaps": `c:2: DAGMAN_ALWAYS_RUN_POST is "perhaps", and is to be true or false`,
		"DAGMAN_SUBMIT_DELAY = 3": "- - - - - - - - c:1: DAGMAN_SUBMIT_DELAY has no effect: the queue makes the jobs " +
			"itself, and tries again where there is no room",
		"DAGMAN_MAX_JOBS_IDEL = 3": "- - - - - - - - c:1: DAGMAN_MAX_JOBS_IDEL has no effect: it is no setting of " +
			"DAGMan that is known here; did you mean DAGMAN_MAX_JOBS_IDLE?",
		"use feature:x": `- - - - - - - - c:1: "use feature:x" has no effect: only lines NAME = VALUE are read`,
	} {
		c, err := ReadConfig(configFiles(text), "c")
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.TrimSpace(strings.Join([]string{number(c.MaxJobs), number(c.MaxIdle), number(c.MaxPre),
				number(c.MaxPost), boolean(c.AlwaysRunPost), boolean(c.DepthFirst), boolean(c.AppendVariables),
				boolean(c.AutoRescue), strings.Join(c.Warnings, " ")}, " "))
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if _, err := ReadConfig(configFiles(""), "none"); err == nil {
		t.Error("a file that is not there is read")
	}
}
