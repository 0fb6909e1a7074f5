package dag

import (
	"slices"
	"strings"
)

// dagCommand is a command of DAG files.
type dagCommand struct {
	name     string
	syntax   string              // for people
	defines  func(p *fileParser) // what the first pass does; nil: nothing
	applies  func(p *fileParser) // what the second pass does; nil: nothing
	hasBlock bool                // it may have an inline description
}

// commandTable returns the commands by their names, with _ for - in them.
func commandTable() map[string]*dagCommand {
	const options, target = " [DIR DIRECTORY] [NOOP] [DONE]", " NODE|ALL_NODES"
	all := []*dagCommand{
		{name: "JOB", syntax: "JOB NODE FILE" + options, defines: parseJob, hasBlock: true},
		{name: "SUBDAG", syntax: "SUBDAG EXTERNAL NODE FILE" + options, defines: parseSubdag},
		{name: "FINAL", syntax: "FINAL NODE FILE [DIR DIRECTORY] [NOOP]", defines: parseFinal, hasBlock: true},
		{name: "PROVISIONER", syntax: "PROVISIONER NODE FILE", defines: parseProvisioner, hasBlock: true},
		{name: "SERVICE", syntax: "SERVICE NODE FILE", defines: parseService, hasBlock: true},
		{name: "SUBMIT_DESCRIPTION", syntax: "SUBMIT-DESCRIPTION NAME {", defines: parseSubmitDescription,
			hasBlock: true},
		{name: "SPLICE", syntax: "SPLICE NAME FILE [DIR DIRECTORY]", defines: parseSplice},
		{name: "INCLUDE", syntax: "INCLUDE FILE", defines: parseInclude, applies: parseInclude},

		{name: "PARENT", syntax: "[WEAK] PARENT NODE… CHILD NODE…", applies: parseParent},
		{name: "WEAK", syntax: "[WEAK] PARENT NODE… CHILD NODE…", applies: parseWeak},
		{name: "SCRIPT", syntax: "SCRIPT [DEFER STATUS SECONDS] [DEBUG FILE STDOUT|STDERR|ALL] PRE|POST|HOLD" + target +
			" EXECUTABLE [ARGUMENT…]", applies: parseScript},
		{name: "PRE_SKIP", syntax: "PRE_SKIP" + target + " CODE", applies: parsePreSkip},
		{name: "RETRY", syntax: "RETRY" + target + " COUNT [UNLESS-EXIT CODE]", applies: parseRetry},
		{name: "ABORT_DAG_ON", syntax: "ABORT-DAG-ON" + target + " CODE [RETURN CODE]", applies: parseAbort},
		{name: "TOLERANCE", syntax: "TOLERANCE" + target + " COUNT|SHARE% [FAIL-FAST|WAIT]", applies: parseTolerance},
		{name: "VARS", syntax: "VARS" + target + ` [PREPEND|APPEND] NAME="VALUE"…`, applies: parseVars},
		{name: "PRIORITY", syntax: "PRIORITY" + target + " NUMBER", applies: parsePriority},
		{name: "CATEGORY", syntax: "CATEGORY" + target + " NAME", applies: parseCategory},
		{name: "MAXJOBS", syntax: "MAXJOBS CATEGORY COUNT", applies: parseMaxJobs},
		{name: "DONE", syntax: "DONE NODE", applies: parseDone},
		{name: "REJECT", syntax: "REJECT", applies: parseReject},
		{name: "DOT", syntax: "DOT FILE [UPDATE|DONT-UPDATE] [OVERWRITE|DONT-OVERWRITE] [INCLUDE FILE]",
			applies: parseDot},
		{name: "NODE_STATUS_FILE", syntax: "NODE_STATUS_FILE FILE [SECONDS] [ALWAYS-UPDATE]", applies: parseStatusFile},
		{name: "JOBSTATE_LOG", syntax: "JOBSTATE_LOG FILE", applies: parseJobstateLog},
		{name: "SAVE_POINT_FILE", syntax: "SAVE_POINT_FILE NODE [FILE]", applies: parseSavePoint},
		{name: "SET_JOB_ATTR", syntax: "SET_JOB_ATTR NAME = VALUE", applies: parseAttribute},
		{name: "ENV", syntax: "ENV SET NAME=VALUE;…, or ENV GET NAME…", applies: parseEnvironment},
		{name: "CONFIG", syntax: "CONFIG FILE", applies: parseConfig},
		{name: "PIN_IN", syntax: "PIN_IN NODE NUMBER", applies: parsePinIn},
		{name: "PIN_OUT", syntax: "PIN_OUT NODE NUMBER", applies: parsePinOut},
		{name: "CONNECT", syntax: "CONNECT SPLICE SPLICE", applies: parseConnect},
	}
	table := map[string]*dagCommand{}
	for _, c := range all {
		table[c.name] = c
	}
	table["NODE"] = table["JOB"]
	return table
}

// displayName is the name as the manual writes it.
func (c *dagCommand) displayName() string {
	switch c.name {
	case "ABORT_DAG_ON", "SUBMIT_DESCRIPTION":
		return strings.ReplaceAll(c.name, "_", "-")
	}
	return c.name
}

// commandNames are the names of all commands, sorted.
func commandNames(table map[string]*dagCommand) []string {
	var names []string
	for _, c := range table {
		if !slices.Contains(names, c.displayName()) {
			names = append(names, c.displayName())
		}
	}
	slices.Sort(names)
	return names
}

// maxCommandName is longer than every name of a command.
const maxCommandName = 32

// findCommand returns the command of a word; case does not matter, and - is _.
func findCommand(table map[string]*dagCommand, word []byte) *dagCommand {
	var name [maxCommandName]byte
	if len(word) > len(name) {
		return nil
	}
	for i, c := range word {
		switch {
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		case c == '-':
			c = '_'
		}
		name[i] = c
	}
	return table[string(name[:len(word)])]
}

// isWord reports whether a word is the keyword, in upper or lower case.
func isWord(word []byte, keyword string) bool {
	if len(word) != len(keyword) {
		return false
	}
	for i, c := range word {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != keyword[i] {
			return false
		}
	}
	return true
}
