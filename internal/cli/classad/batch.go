package classad

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// maxBatchLine bounds a line of a batch: two ads and an expression of any size that
// parses.
const maxBatchLine = 4 * classad.MaxBytes

// The words of a batch that are not ClassAd.
const (
	batchComment = "# context" // begins the lines that are passed over
	batchTarget  = ";;TARGET;;"
	batchParse   = "PARSE_AD"
	batchEmpty   = "(empty string)" // stands for no text at all behind PARSE_AD
	batchMatch   = "MATCH:"
)

// evalBatch answers each line of standard input or of a file with one line.
func evalBatch(c *frame.Invocation, args []string) error {
	in := c.Stdin
	if c.IsFlagSet("ad") || c.IsFlagSet("target") {
		return frame.WithHint(frame.UsageErrorf("--batch has a context on each line, and takes no --ad or --target"),
			frame.SuggestUsage(c.Command, nil))
	}
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(c.AbsolutePath(args[0]))
		if err != nil {
			return inputError(args[0], err)
		}
		defer f.Close()
		in = f
	}
	lines, out := bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(c.Stdout, 1<<16)
	b := &batchEvaluator{env: evalEnv(c)}
	for {
		line, long, err := readLine(lines, maxBatchLine)
		if err != nil && !errors.Is(err, io.EOF) {
			out.Flush()
			return inputError("standard input", err)
		}
		if err != nil && line == "" && !long {
			return out.Flush()
		}
		if !strings.HasPrefix(line, batchComment) {
			answer := parseErrorAnswer(errors.New("the line is too long"))
			if !long {
				answer = b.evalLine(line)
			}
			out.WriteString(answer)
			out.WriteByte('\n')
		}
		if lines.Buffered() == 0 { // whoever asks may wait for the answer before asking again
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// inputError is the error for a file that cannot be read.
func inputError(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return frame.KindErrorf(roost.NoInput, "%s: %v", file, err)
}

// readLine reads a line without its end. Of one that is longer than most it reads all and
// keeps the beginning only.
func readLine(r *bufio.Reader, most int) (line string, long bool, err error) {
	var b []byte
	for {
		part, err := r.ReadSlice('\n')
		if room := most - len(b); len(part) > room {
			part, long = part[:room], true
		}
		b = append(b, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimSuffix(string(b), "\n"), long, err
		}
	}
}

// batchEvaluator evaluates lines. Many lines in a row often share a context.
type batchEvaluator struct {
	env         *classad.EvalEnv
	context     string
	my, target  *classad.Ad
	contextRead bool  // context was read before
	err         error // what is wrong with it
}

// evalLine is the result of one line: a value, or PARSE_ERROR and the cause.
func (b *batchEvaluator) evalLine(line string) string {
	context, rest, ok := strings.Cut(line, "\t")
	if !ok {
		return parseErrorAnswer(errors.New("there is no tab between context and expression"))
	}
	src, _, _ := strings.Cut(rest, "\t")
	if context == batchParse {
		if src == batchEmpty {
			src = ""
		}
		ad, err := classad.Parse(src)
		if err != nil {
			return parseErrorAnswer(err)
		}
		return ad.String()
	}
	if !b.contextRead || context != b.context {
		b.context, b.contextRead = context, true
		b.my, b.target, b.err = parseContext(context)
	}
	if b.err != nil {
		return parseErrorAnswer(b.err)
	}
	if side, ok := strings.CutPrefix(src, batchMatch); ok {
		return matchResult(classad.Match(b.my, b.target, b.env), strings.TrimSpace(side))
	}
	e, err := classad.ParseExpr(src)
	if err != nil {
		return parseErrorAnswer(err)
	}
	return classad.Eval(e, b.my, b.target, b.env).String()
}

// parseContext reads a context: nothing, an ad, or two.
func parseContext(context string) (my, target *classad.Ad, err error) {
	left, right, pair := strings.Cut(context, batchTarget)
	my = classad.New()
	if strings.TrimSpace(left) != "" {
		if my, err = classad.Parse(left); err != nil {
			return nil, nil, err
		}
	}
	if pair {
		target, err = classad.Parse(right)
	}
	return my, target, err
}

func matchResult(r classad.MatchResult, what string) string {
	switch what {
	case "symmetric":
		return classad.BoolValue(r.Matched).String()
	case "left.requirements":
		return classad.BoolValue(r.Left.IsTrue()).String()
	case "right.requirements":
		return classad.BoolValue(r.Right.IsTrue()).String()
	}
	return parseErrorAnswer(errors.New("MATCH: is followed by symmetric, left.requirements or right.requirements"))
}

// parseErrorAnswer is the answer to a line that cannot be read.
func parseErrorAnswer(err error) string {
	return "PARSE_ERROR " + strings.NewReplacer("\n", " ", "\r", " ").Replace(err.Error())
}
