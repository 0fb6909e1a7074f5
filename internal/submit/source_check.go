package submit

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// Bounds on the source, checked before it is parsed. The parser of hclsyntax and the
// evaluation of its expressions are recursive. Both go as deep as brackets nest and
// operators follow each other, and a stack overflow ends a Go program.
const (
	maxNesting          = 100
	maxChainedOperators = 1000    // operators, dots and indexes in one expression, at one level of brackets
	maxTokens           = 2 << 20 // brackets, quotes and commas: a token takes a hundred bytes
	maxJobs             = 1000    // of one file
	maxFailures         = 20      // diagnostics of one file
)

// checkSource checks that src is text of an acceptable size and depth. It returns nil if
// src may be parsed.
func checkSource(src []byte, filename string) hcl.Diagnostics {
	if len(src) > roost.MaxJobFileBytes {
		return hcl.Diagnostics{newDiagnostic(nil, "the job file is too big",
			fmt.Sprintf("It has %v, and at most %v are read. Keep data in files of its own: file(\"list.csv\") "+
				"reads one, and "+
				"inputs brings others to the task.", roost.Bytes(len(src)), roost.Bytes(roost.MaxJobFileBytes)))}
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return hcl.Diagnostics{newDiagnostic(rangeAt(src, filename, i, 1), "this is not a text file",
			fmt.Sprintf("Byte %d of it is a NUL. A job file is text in UTF-8; to run a program, name it in one: "+
				"executable = \"./program\".", i))}
	}
	if i := firstInvalidByte(src); i >= 0 {
		return hcl.Diagnostics{newDiagnostic(rangeAt(src, filename, i, 1), "this is not text in UTF-8",
			fmt.Sprintf("Byte %d of the file (0x%02x) belongs to no character of UTF-8. Save the file as UTF-8 in "+
				"your editor, "+
				"or convert it: iconv -f latin1 -t utf-8.", i, src[i]))}
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return hcl.Diagnostics{newDiagnostic(rangeAt(src, filename, 0, 0), "the job file is empty", emptyHint)}
	}
	marks := 0
	for _, c := range src {
		switch c {
		case '(', ')', '[', ']', '{', '}', ',', '"', '.', '-', '!':
			marks++
		}
	}
	if marks > maxTokens {
		return hcl.Diagnostics{newDiagnostic(nil, "the job file is too complicated",
			fmt.Sprintf("It has %d brackets, quotes, commas and operators, and at most %d are read. Keep data "+
				"in files of "+
				"its own: csvdecode(file(\"list.csv\")) reads one.", marks, maxTokens))}
	}
	return checkDepth(src, filename)
}

const emptyHint = "A job file has at least one job:\n\n  job \"hello\" {\n    command = [\"echo\", \"hello\"]\n  }"

// checkDepth refuses source that nests or chains too deeply. A chain ends at a comma and,
// outside of parentheses and square brackets, at the end of its line.
func checkDepth(src []byte, filename string) hcl.Diagnostics {
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	chain, opener := []int{0}, []hclsyntax.TokenType{hclsyntax.TokenOBrace}
	for i := range tokens {
		t := &tokens[i]
		top := len(chain) - 1
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp,
			hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			if t.Type == hclsyntax.TokenOBrack {
				chain[top]++
			}
			chain, opener = append(chain, 0), append(opener, t.Type)
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd,
			hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			if top > 0 {
				chain, opener = chain[:top], opener[:top]
			}
		case hclsyntax.TokenTemplateControl: // ends with a TokenTemplateSeqEnd, and what it opens nests
			chain[top]++
			chain, opener = append(chain, 0), append(opener, t.Type)
		case hclsyntax.TokenComma:
			chain[top] = 0
		case hclsyntax.TokenNewline:
			if opener[top] == hclsyntax.TokenOBrace {
				chain[top] = 0
			}
		case hclsyntax.TokenNumberLit:
			if hasHugeExponent(string(t.Bytes)) || len(t.Bytes) > 400 {
				return hcl.Diagnostics{newDiagnostic(&t.Range, "this number is too large",
					"Numbers go up to 1e308.")}
			}
		case hclsyntax.TokenIdent, hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenComment,
			hclsyntax.TokenEqual:
		default:
			chain[top]++
		}
		if last := len(chain) - 1; last > maxNesting {
			return hcl.Diagnostics{newDiagnostic(&t.Range, "brackets nest too deeply",
				fmt.Sprintf("This is bracket number %d within each other, and at most %d are allowed. Name the inner "+
					"parts in a locals block.", last, maxNesting))}
		} else if chain[last] > maxChainedOperators {
			return hcl.Diagnostics{newDiagnostic(&t.Range, "this expression is too long",
				fmt.Sprintf("It chains more than %d operators. Split it up in a locals block, or use a list and "+
					"a for expression.", maxChainedOperators))}
		}
	}
	return nil
}

func firstInvalidByte(src []byte) int {
	for i := 0; i < len(src); {
		if src[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// rangeAt returns the range of size bytes at an offset of src.
func rangeAt(src []byte, filename string, offset, size int) *hcl.Range {
	line := 1 + bytes.Count(src[:offset], []byte{'\n'})
	column := offset - bytes.LastIndexByte(src[:offset], '\n')
	start := hcl.Pos{Line: line, Column: column, Byte: offset}
	end := hcl.Pos{Line: line, Column: column + size, Byte: offset + size}
	return &hcl.Range{Filename: filename, Start: start, End: end}
}
