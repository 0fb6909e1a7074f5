package pmi

import (
	"strconv"
	"strings"
)

// A command of PMI-2 and its answer are a length of six characters and a text of that
// many bytes: NAME=value;NAME=value; with a semicolon in a value doubled. The first name
// is cmd (PMI-2 wire protocol of MPICH, "PMI v2 Wire Protocol").
const (
	lengthSize = 6
	// maxFrame bounds the text of a command in bytes: that of a spawn, which is refused,
	// has the arguments of programs.
	maxFrame = 64 << 10
)

// takeFrame cuts the first whole command off the input. bad is true when there can be
// none.
func (r *rankState) takeFrame() (text string, ok, bad bool) {
	if len(r.input) < lengthSize {
		return "", false, false
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(r.input[:lengthSize])))
	if err != nil || size < 1 || size > maxFrame {
		return "", false, true
	}
	if len(r.input) < lengthSize+size {
		return "", false, false
	}
	text = string(r.input[lengthSize : lengthSize+size])
	r.input = append(r.input[:0], r.input[lengthSize+size:]...)
	return text, true, false
}

// pmi2Command is one command of a rank.
type pmi2Command struct {
	name   string
	values map[string]string
}

// maxPairs bounds the names of a command that is understood.
const maxPairs = 64

// parseFrame reads the text of a command. Of a spawn only the beginning is read.
func parseFrame(text string) (c pmi2Command, ok bool) {
	c.values = map[string]string{}
	for text != "" {
		name, rest, found := strings.Cut(text, "=")
		if !found || name == "" || len(name) >= MaxKey {
			return c, false
		}
		var value strings.Builder
		for {
			part, more, ended := strings.Cut(rest, ";")
			if !ended {
				return c, false
			}
			value.WriteString(part)
			if rest = more; !strings.HasPrefix(rest, ";") {
				break
			}
			value.WriteByte(';')
			rest = rest[1:]
		}
		text = rest
		switch {
		case c.name == "" && name != "cmd":
			return c, false
		case c.name == "":
			c.name = value.String()
		case len(c.values) >= maxPairs:
			return c, c.name == "spawn"
		default:
			c.values[name] = value.String()
		}
	}
	return c, c.name != ""
}

// answerFrame writes the answer to a command of a name, as pairs of names and values. A
// rank with threads knows by thread which of them the answer is for.
func answerFrame(command, thread string, pairs ...string) string {
	var b strings.Builder
	b.WriteString("cmd=" + command + "-response;")
	if thread != "" {
		pairs = append([]string{"thrid", thread}, pairs...)
	}
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(pairs[i] + "=" + strings.ReplaceAll(pairs[i+1], ";", ";;") + ";")
	}
	length := strconv.Itoa(b.Len())
	return strings.Repeat(" ", lengthSize-len(length)) + length + b.String()
}
