package submit

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

const conditionHint = "Write a ClassAd expression over the attributes of the job, as in periodic_hold = " +
	"\"NumJobStarts > 3\"; roost-job(5), CONDITIONS, lists them."

// conditionReader reads the conditions of a job.
type conditionReader struct{ *jobBuilder }

// readConditions reads what becomes of a task under conditions.
func (b conditionReader) readConditions() {
	for _, c := range roost.PolicyConditions() {
		b.readCondition(c)
		if c.ReasonAttr == "" {
			continue
		}
		reason, at, ok := b.constantText(c.Setting+"_reason", "Write a sentence for those who look at the task.")
		switch _, there := b.body.Attributes[c.Setting]; {
		case ok && !there:
			b.reportProblem(at, fmt.Sprintf("%s_reason is set, and %s is not", c.Setting, c.Setting), conditionHint)
		case ok:
			b.ad.SetString(c.ReasonAttr, reason)
		}
	}
}

func (b conditionReader) readCondition(c roost.PolicyCondition) {
	v, at, ok := b.constantValue(c.Setting)
	switch {
	case !ok:
	case v.Type() == cty.Bool:
		b.ad.SetBool(c.Attr, v.True())
	case v.Type() != cty.String:
		b.reportProblem(at, c.Setting+" has to be a condition",
			fmt.Sprintf("It is %s. %s", describeValue(v), conditionHint))
	case b.constraintReader().checkClassAd(v.AsString(), b.body.Attributes[c.Setting].Expr, c.Setting,
		conditionHint):
		if err := b.ad.SetExpr(c.Attr, v.AsString()); err != nil {
			b.reportProblem(at, c.Setting+" has to be a condition", err.Error()+". "+conditionHint)
		}
	}
}
