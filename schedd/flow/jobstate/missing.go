package jobstate

import "strings"

// maxCompared bounds the lines that are compared to find a place in a log.
const maxCompared = 64

// Missing returns the text that the end of a file lacks of the newest lines of a flow. It
// goes on within a line that a crash has cut off.
func Missing(end string, lines []string) string {
	whole, torn := splitTorn(end)
	rest := lines[present(whole, lines):]
	if len(rest) == 0 {
		if torn != "" && len(lines) > 0 {
			return "\n"
		}
		return ""
	}
	text := strings.Join(rest, "\n") + "\n"
	switch {
	case torn == "":
		return text
	case strings.HasPrefix(rest[0], torn):
		return text[len(torn):]
	}
	return "\n" + text
}

// splitTorn splits what is behind the last line end off.
func splitTorn(end string) (whole []string, torn string) {
	at := strings.LastIndexByte(end, '\n')
	if at < 0 {
		return nil, end
	}
	return strings.Split(end[:at], "\n"), end[at+1:]
}

// present returns how many of the lines are in the file. The best place is that in which
// most lines before the end of the file are the same.
func present(file, lines []string) (count int) {
	if len(file) == 0 {
		return 0
	}
	best := 0
	for k := min(len(lines), len(file)); k > 0; k-- {
		same := 0
		for same < min(k, len(file), maxCompared) && lines[k-1-same] == file[len(file)-1-same] {
			same++
		}
		if same == min(k, len(file), maxCompared) {
			return k
		}
		if same > best {
			best, count = same, k
		}
	}
	if best > 0 {
		return count
	}
	// somebody else has written the end of the file
	has := make(map[string]bool, len(file))
	for _, line := range file {
		has[line] = true
	}
	for k := len(lines); k > 0; k-- {
		if has[lines[k-1]] {
			return k
		}
	}
	return 0
}
