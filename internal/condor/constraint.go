package condor

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/classad"
)

// maxConstraintBytes bounds the text of a constraint.
const maxConstraintBytes = 1 << 20

// constraintSteps bounds what a constraint may cost for one ad.
const constraintSteps = 100_000

// Constraint is a condition on ads; the zero value admits all.
type Constraint struct {
	exprs []classad.Expr
	env   *classad.EvalEnv
}

// NewConstraint reads the values of -constraint, all of which must be true.
func NewConstraint(texts []string, now time.Time) (c Constraint, err error) {
	c.env = NewEnv(now)
	for _, text := range texts {
		if len(text) > maxConstraintBytes {
			return c, fmt.Errorf("-constraint: it has %d bytes, more than %d", len(text), maxConstraintBytes)
		}
		e, err := classad.ParseExpr(text)
		if err != nil {
			return c, fmt.Errorf("-constraint: %w", err)
		}
		c.exprs = append(c.exprs, e)
	}
	return c, nil
}

// NewEnv returns the environment in which expressions of a command line are evaluated.
func NewEnv(now time.Time) *classad.EvalEnv {
	return &classad.EvalEnv{Now: now, Steps: constraintSteps}
}

// Admits reports whether an ad meets the condition. As in HTCondor a number other than 0
// is true.
func (c Constraint) Admits(ad *classad.Ad) bool {
	for _, e := range c.exprs {
		v := classad.Eval(e, ad, nil, c.env)
		if f, ok := v.Number(); !v.IsTrue() && (!ok || f == 0) {
			return false
		}
	}
	return true
}
