package qsub

import (
	"slices"
	"strconv"
	"strings"
)

// listAttributes are the keys of -W whose values are lists. An item after a comma without
// "=" belongs to them.
var listAttributes = []string{"comment", "depend", "stagein", "stageout", "group_list"}

// NamedAttributes are the attributes for which -W works like an option of their own.
var NamedAttributes = map[string]byte{
	"Account_Name": 'A', "Checkpoint": 'c', "Error_Path": 'e', "Execution_Time": 'a', "Job_Name": 'N', "Join_Path": 'j',
	"Keep_Files": 'k', "Mail_Points": 'm',
	"Mail_Users": 'M', "Output_Path": 'o', "Priority": 'p', "project": 'P', "Remove_Files": 'R', "Shell_Path_List": 'S',
	"User_List": 'u', "Variable_List": 'v',
}

// AttributeOption returns the option that sets the same attribute as -W does under this
// name.
func AttributeOption(attribute string) (letter byte, ok bool) {
	letter, ok = NamedAttributes[attribute]
	return letter, ok
}

// AddAttributes parses the value of -W: "key=value[,key=value…]". A repeated key replaces
// its value.
func (s *JobSubmission) AddAttributes(value string) error {
	key := ""
	for _, item := range SplitList(value) {
		name, v, ok := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case ok && name != "":
			key = name
			s.Attributes[key] = entryOf(key, v)
		case key != "" && slices.Contains(listAttributes, key):
			s.Attributes[key] += "," + entryOf(key, strings.TrimSpace(item))
		default:
			return IllegalValueError('W')
		}
	}
	return nil
}

// entryOf returns an entry in the form that a list needs. Commas in file names are
// escaped.
func entryOf(key, entry string) string {
	if key == "stagein" || key == "stageout" {
		return strings.ReplaceAll(entry, ",", `\,`)
	}
	return entry
}

// parseAttributes applies the attributes of -W.
func (s *JobSubmission) parseAttributes() error {
	s.umask = -1
	for _, key := range SortedNames(s.Attributes) {
		if err := s.parseAttribute(key, s.Attributes[key]); err != nil {
			return err
		}
	}
	if s.ownDirectory = s.Attributes["sandbox"] == "PRIVATE" || len(s.stageIn)+len(s.stageOut) > 0; s.ownDirectory &&
		s.Dir != "" {
		return refusalf("-d and -w name the directory of a job that has one of its own, by sandbox=PRIVATE, stagein "+
			"or stageout", ExitUsage)
	}
	return nil
}

func (s *JobSubmission) parseAttribute(key, v string) (err error) {
	ok := true
	switch key {
	case "depend":
		return s.setDepend(v)
	case "block":
		ok = v == "true" || v == "false"
		s.block = v == "true"
	case "umask":
		var n uint64
		n, err = strconv.ParseUint(v, 8, 16)
		ok = err == nil && n <= 0o777
		s.umask = int64(n)
	case "max_run_subjobs":
		var n int
		n, err = strconv.Atoi(v)
		if ok = err == nil && n >= 1; ok && s.maxRunning != 0 {
			return refusalf("multiple max_run_subjobs values found", ExitUsage)
		}
		s.maxRunning = n
	case "run_count":
		_, err = strconv.ParseUint(v, 10, 31)
		ok = err == nil
	case "sandbox":
		ok = v == "PRIVATE" || v == "HOME"
	case "stagein", "stageout":
		return s.setStage(key, v)
	case "group_list":
		return s.setGroup(v)
	case "comment": // it is shown as long as the job waits
	case "x":
		return s.setAccess(v)
	case "Rerunable":
		ok = v == "True" || v == "False" || v == "y" || v == "n"
		s.NoRerun = v == "False" || v == "n"
	case "interactive":
		return s.setInteractive(v)
	case "create_resv_from_job":
		return refusalf("-W "+key+" is not supported yet: roost reservation makes one", ExitUsage)
	// about the other machines of a job, which it does not have
	case "release_nodes_on_stageout", "tolerate_node_failures":
	default:
		if letter, known := NamedAttributes[key]; known {
			return s.ApplyOptions([]OptionValue{{letter, v}})
		}
		return refusalf("Undefined Attribute "+key, exitNoAttribute)
	}
	if !ok {
		return IllegalValueError('W')
	}
	return nil
}

// setAccess parses Moab's words about sharing machines. They are in the list of -W x=,
// separated by semicolons. Torque itself ignores other words, and OpenPBS knows none.
func (s *JobSubmission) setAccess(v string) error {
	for word := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ';' || r == ' ' }) {
		name, policy, _ := strings.Cut(strings.ReplaceAll(strings.ToUpper(word), "=", ":"), ":")
		switch {
		case name == "NACCESSPOLICY" && policy != "":
			s.exclusive = policy != "SHARED"
		case !s.Caller.isTorque():
			return refusalf("Undefined Attribute x: of Moab's words only NACCESSPOLICY is known", exitNoAttribute)
		}
	}
	return nil
}

// setGroup parses "group[@host],…": the group that the job runs in, which its user must
// be in. Its host is not known yet, so the group of the server counts, or otherwise the
// one without a host.
func (s *JobSubmission) setGroup(v string) error {
	seen := map[string]bool{}
	for _, item := range listItems(v) {
		name, host, _ := strings.Cut(item, "@")
		if name == "" || seen[host] {
			return IllegalValueError('W')
		}
		if seen[host] = true; host == "" && s.group == "" ||
			host != "" && strings.EqualFold(host, s.paths().serverHost()) {
			s.group = name
		}
	}
	return nil
}
