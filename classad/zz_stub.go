package classad

import "time"

type literal struct{ v Value }
type listNode struct{ elems []Expr }
type adNode struct{ ad *Ad }
type frame struct{}
type evaluator struct{}
type style struct{}

var newStyle style

func (*literal) eval(*evaluator, *frame) Value  { return Value{} }
func (*listNode) eval(*evaluator, *frame) Value { return Value{} }
func (*adNode) eval(*evaluator, *frame) Value   { return Value{} }

func (c *composite) frame(*evaluator) *frame          { return nil }
func (ev *evaluator) eval(n node, f *frame) Value      { return Value{} }
func newEvaluator(my, target *Ad, env *Env) *evaluator { return &evaluator{} }
func appendValue(b []byte, v Value, s *style) []byte   { return b }
func appendExpr(b []byte, e Expr, s *style) []byte     { return b }
func realToInt(f float64) (int64, bool)                { return int64(f), true }

// SyntaxError says where and why a text is not in the language.
type SyntaxError struct {
	Offset int    // in bytes, from 0
	Line   int    // from 1
	Column int    // in characters, from 1
	Msg    string // the cause
}

func (e *SyntaxError) Error() string { return e.Msg }

// ParseExpr reads one expression. The error is a *[SyntaxError].
func ParseExpr(src string) (Expr, error) { return Expr{}, nil }

// Parse reads an ad in new syntax: [ a = 1; b = "x" ]. The error is a *[SyntaxError].
func Parse(src string) (*Ad, error) { return New(), nil }

// ParseOld reads an ad in old syntax: one attribute a line, A = 1. The error is a *[SyntaxError].
func ParseOld(src string) (*Ad, error) { return New(), nil }

// String is the ad in new syntax, on one line.
func (a *Ad) String() string { return "" }

// Old is the ad in old syntax, one attribute a line.
func (a *Ad) Old() string { return "" }

// MarshalJSON is HTCondor's JSON form.
func (a *Ad) MarshalJSON() ([]byte, error) { return nil, nil }

// UnmarshalJSON reads HTCondor's JSON form.
func (a *Ad) UnmarshalJSON(b []byte) error { return nil }

// Env is what an evaluation may ask of the world. A nil *Env is an empty one.
type Env struct {
	Now    time.Time      // what time() says, and whose location is the local time zone; the zero time counts as the epoch, UTC
	Random func() float64 // in [0, 1); nil makes random() an ERROR
	Steps  int            // nodes evaluated before giving up with ERROR; 0 for 10,000,000
}

// Eval evaluates an attribute. One that is missing is UNDEFINED.
func (a *Ad) Eval(name string, env *Env) Value { return Value{} }

// Eval evaluates e with the attributes of my, then of target, either of which may be nil.
func Eval(e Expr, my, target *Ad, env *Env) Value { return Value{} }

// MatchResult is the outcome of [Match].
type MatchResult struct {
	Matched             bool    // both Left and Right are true
	Left, Right         Value   // of each side's Requirements; UNDEFINED where missing
	LeftRank, RightRank float64 // of each side's Rank, 0 where it is not a number; evaluated only when Matched
}

// Match evaluates each ad's Requirements against the other.
func Match(left, right *Ad, env *Env) MatchResult { return MatchResult{} }

// Conjuncts are the operands of the && at the top of e, from left to right; e itself if there is none.
func Conjuncts(e Expr) []Expr { return nil }

// References are the names that e mentions, each once, sorted without regard to case: those scoped MY (or self), those scoped TARGET
// (or other), and those without a scope.
func References(e Expr) (my, target, unscoped []string) { return }
