package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
)

const ownerFile = "owner file"

// examineFiles checks the files that people have written: the node file and the machine
// owner's file. The latter counts where a startd reads it. It returns the node, nil where
// there is none to be read.
func examineFiles(c *frame.Invocation) (findings []checkResult, n *config.Node) {
	n, err := nodeaccess.ReadNodeFile(c)
	switch {
	case errors.Is(err, roost.BadConfig):
		return fileFindings("node file", levelError, err.Error()), nil
	case err != nil:
		return nil, nil // there is no node here, or it is not this user's
	}
	for _, text := range n.Warnings {
		findings = append(findings, fileFindings("node file", levelWarning, text)...)
	}
	heeded := false
	for i := range n.Startds {
		heeded = heeded || n.Startds[i].HasOwnerPolicy()
	}
	if _, err := os.Stat(n.Owner.File); err != nil && errors.Is(err, fs.ErrNotExist) {
		return findings, n
	}
	if !heeded {
		return append(findings, checkResult{Check: ownerFile, Level: levelWarning, Text: n.Owner.File +
			" is not heeded: no startd of this node has a policy",
			Hint: `say policy = "desktop" in its startd block; see roost-node(5)`}), n
	}
	rules, err := config.LoadOwner(n.Owner.File)
	switch {
	case errors.Is(err, roost.BadConfig):
		return append(findings, fileFindings(ownerFile, levelError, err.Error())...), n
	case err != nil:
		return append(findings, checkResult{Check: ownerFile, Level: levelError,
			Text: firstLine(frame.ErrorText(err)) + "; nothing is lent until it can be read"}), n
	}
	for _, text := range rules.Warnings {
		findings = append(findings, fileFindings(ownerFile, levelWarning, text)...)
	}
	return append(findings, checkResult{Check: ownerFile, Level: levelOK,
		Text: n.Owner.File + availabilityText(rules)}), n
}

// availabilityText says what an owner's file says of how much is lent.
func availabilityText(r config.OwnerRules) string {
	var parts []string
	if r.CPU > 0 {
		parts = append(parts, fmt.Sprintf("%v cores", r.CPU))
	}
	if r.Memory > 0 {
		parts = append(parts, r.Memory.String())
	}
	switch {
	case r.Paused:
		return ": paused, nothing is lent"
	case len(parts) > 0:
		return ": no more is lent than " + strings.Join(parts, " and ")
	}
	return ""
}

// fileFindings makes a finding of each diagnostic of a file: place, line, caret and cure.
func fileFindings(check string, l checkLevel, text string) (findings []checkResult) {
	for _, one := range strings.Split(text, "\n\n") {
		lines := strings.Split(one, "\n")
		f := checkResult{Check: check, Level: l, Text: lines[0]}
		if l == levelError && check == ownerFile {
			f.Text += "; nothing is lent until it is right"
		}
		for _, line := range lines[1:] {
			if number, _, ok := strings.Cut(line, " | "); ok && strings.Trim(number, " 0123456789") == "" {
				f.Text += "\n" + line
			} else {
				f.Hint = strings.TrimSpace(f.Hint + " " + strings.TrimSpace(line))
			}
		}
		findings = append(findings, f)
	}
	return findings
}
