package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost"
)

// readDirectory reads the directory that relative paths start from. The task runs in it
// if the machine has it.
func (b programReader) readDirectory() {
	b.workingDirectory = fixedText(b.parser.options.Dir, b.block.DefRange())
	if a, ok := b.attribute("directory", b.taskReader().taskRoots()...); ok {
		t, ok := b.taskReader().readText(a.Expr, "directory")
		if !ok || b.transferReader().refuseJobNumber(t, "a directory") {
			return
		}
		b.workingDirectory = b.absoluteText(t, b.parser.options.Dir)
		b.checkDirectory()
	}
	b.ad.SetString(roost.AttrIwd, b.workingDirectory.adText())
}

func (b programReader) checkDirectory() {
	where, fixed := b.workingDirectory.fixedText()
	if !fixed || b.parser.options.Files == nil {
		return
	}
	info, err := b.parser.options.Files.Stat(where)
	switch {
	case err != nil:
		b.parser.report(missingFileDiagnostic(&b.workingDirectory.sourceRange,
			fmt.Sprintf("the directory %q is not there", truncateText(where)),
			"Make it with mkdir -p, or check the name"+b.transferReader().similarFile(where)+"."))
	case !info.IsDir():
		b.parser.report(missingFileDiagnostic(&b.workingDirectory.sourceRange,
			fmt.Sprintf("%q is not a directory", truncateText(where)), "The task's working directory has to be one."))
	}
}

// absoluteText makes a path absolute that may differ between tasks, by its first piece.
func (b programReader) absoluteText(t taskText, dir string) taskText {
	if s, fixed := t.fixedText(); fixed {
		return fixedText(absolutePath(s, dir, b.parser.options.Home), t.sourceRange)
	}
	first := t.pieces[0]
	if first.column == "" && strings.HasPrefix(first.fixed, "/") {
		return t
	}
	if first.column == "" && strings.HasPrefix(first.fixed, "~/") {
		rest := append([]textPiece{{fixed: first.fixed[1:]}}, t.pieces[1:]...)
		return taskText{rest, t.sourceRange}.withAffixes(b.parser.options.Home, "")
	}
	// a column that may hold absolute paths
	if first.column != "" && !containsName([]string{taskIndex, arrayIndex, jobSequence}, first.column) {
		values := make([]string, b.tasks.count)
		outside := false
		for i := range values {
			s := b.taskReader().taskValue(t, i)
			values[i] = absolutePath(s, dir, b.parser.options.Home)
			outside = outside || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~")
		}
		if outside {
			return taskText{[]textPiece{{column: b.taskReader().addColumn("path", "", values)}}, t.sourceRange}
		}
	}
	return t.withAffixes(strings.TrimSuffix(dir, "/")+"/", "")
}

// absoluteFromJob makes a path absolute from the job's directory.
func (b programReader) absoluteFromJob(t taskText) taskText {
	if iwd, fixed := b.workingDirectory.fixedText(); fixed {
		return b.absoluteText(t, iwd)
	}
	if s, fixed := t.fixedText(); fixed && (path.IsAbs(s) || strings.HasPrefix(s, "~")) {
		return b.absoluteText(t, "/")
	}
	pieces := append([]textPiece(nil), b.workingDirectory.pieces...)
	pieces = append(pieces, textPiece{fixed: "/"})
	return taskText{append(pieces, t.pieces...), t.sourceRange}
}
