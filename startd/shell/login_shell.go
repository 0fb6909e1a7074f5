package shell

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// agentRequest returns the request for the agent.
func (o StartOptions) agentRequest(t *TaskHandle) *agentRequest {
	environment := t.environment
	if o.Terminal && printable(o.Term) {
		environment = slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
			return strings.HasPrefix(v, "TERM=")
		})
		environment = append(environment, "TERM="+o.Term)
	}
	if o.Variable != "" {
		environment = append(slices.Clone(environment), o.Variable)
	}
	return &agentRequest{
		Parent: os.Getpid(), Joined: t.namespaceFlags, Root: t.root != nil, Change: o.changesUser(), UID: o.UID,
		GID: o.GID, Groups: o.Groups,
		Umask: t.umask, Bounding: t.bounding, Limits: t.limits, Nice: t.nice, Environment: environment,
		Command: o.Command,
		Shells:  shellCandidates(o.UID, variableValue(t.environment, "SHELL")), Terminal: o.Terminal, Login: o.Login,
	}
}

// printable reports whether a terminal name is valid. It comes from a remote client, and
// libraries open files of that name.
func printable(term string) bool {
	return term != "" && len(term) <= 64 && !strings.ContainsFunc(term, func(r rune) bool {
		return r == '/' || !unicode.IsPrint(r) || r > 0x7e
	})
}

// shellCandidates returns the shells to try for a user, in order. They are the shell in
// the environment, the one of the user database, and those that every system has.
func shellCandidates(uid uint32, named string) (list []string) {
	for _, path := range []string{named, loginShell(uid), "/bin/bash", "/bin/sh"} {
		if filepath.IsAbs(path) && !strings.HasSuffix(path, "/nologin") && !strings.HasSuffix(path, "/false") &&
			!slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// loginShell returns the user's shell in passwd(5).
func loginShell(uid uint32) string {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return ""
	}
	defer f.Close()
	want := strconv.FormatUint(uint64(uid), 10)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) == 7 && fields[2] == want {
			return fields[6]
		}
	}
	return ""
}
