package translate

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// checkReadable checks that src is a text that a job file can contain.
func checkReadable(src []byte) (string, error) {
	if len(src) > MaxSize {
		return "", &translateError{roost.Invalid,
			fmt.Sprintf("it has %v, and at most %v are translated: keep data in files of their own",
				roost.Bytes(len(src)), roost.Bytes(MaxSize))}
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	for i, c := range src {
		switch {
		case c == 0:
			return "", unreadableError(lineAt(src, i), "a NUL stands there: it is not a text, but a program or data")
		case c == '\r' && i+1 < len(src) && src[i+1] == '\n':
			return "", unreadableError(lineAt(src, i),
				"it ends in CR LF, as on Windows, and no shell here runs that: sed -i 's/\\r$//' FILE mends it")
		case c == '\r' || c < ' ' && c != '\n' && c != '\t' && c != '\f' && c != '\v' && c != 0x1b && c != '\a' &&
			c != '\b':
			return "", unreadableError(lineAt(src, i),
				fmt.Sprintf("a control character (0x%02x) stands there, which no job file can hold", c))
		}
	}
	if !utf8.Valid(src) {
		i := 0
		for i < len(src) {
			r, size := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			i += size
		}
		return "", unreadableError(lineAt(src, i),
			"it is not in UTF-8: iconv -f latin1 -t utf-8 FILE converts what was written on an old system")
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return "", nothingError("the file is empty")
	}
	return string(src), nil
}

func lineAt(src []byte, offset int) int { return 1 + bytes.Count(src[:offset], []byte{'\n'}) }

var (
	queueLine  = lazyregexp.New(`(?mi)^[ \t]*queue\b[^=\n]*$`)
	condorLine = lazyregexp.New(
		`(?mi)^[ \t]*(executable|arguments|universe|log|output|error|request_\w+|requirements|container_image|docker_image)[ \t]*=`,
	)
	slurmLine  = lazyregexp.New(`(?m)^#SBATCH\s`)
	pbsLine    = lazyregexp.New(`(?m)^[ \t]*#PBS\s`)
	torqueMark = lazyregexp.New(
		`(?m)^[ \t]*#PBS\s+(-t\b|-d\b|-T\b|-F\b|-l\s*procs=|-W\s*x=|.*:gpus=)|PBS_ARRAYID\b|PBS_NUM_PPN\b|PBS_GPUFILE\b|PBS_VNODENUM\b`,
	)
)

// Detect returns the dialect of a text, or "".
func Detect(text string) Dialect { return detectDialect(text) }

// detectDialect returns the dialect of a text, or "".
func detectDialect(text string) Dialect {
	slurm, pbs := len(slurmLine().FindAllString(text, -1)), len(pbsLine().FindAllString(text, -1))
	switch {
	case slurm > 0 && slurm >= pbs:
		return Slurm
	case pbs > 0:
		if torqueMark().MatchString(text) {
			return Torque
		}
		return PBS
	case !strings.HasPrefix(text, "#!") && queueLine().MatchString(text) && condorLine().MatchString(text):
		return Condor
	}
	return ""
}
