package wire

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

func infoToCore(i *pb.Info) (contract.Info, error) {
	if i == nil {
		return contract.Info{}, errors.New("no info")
	}
	out := contract.Info{
		Program: i.GetProgram(), Plugin: i.GetPlugin(), Interpreter: i.GetInterpreter(), SharedHeap: i.GetSharedHeap(),
	}
	err := errors.Join(checkText("program", out.Program), checkText("plugin", out.Plugin),
		checkText("interpreter", out.Interpreter), checkText("shared heap", out.SharedHeap))
	if err != nil {
		return contract.Info{}, err
	}
	if out.PID, err = toCount("process id", i.GetPid()); err != nil {
		return contract.Info{}, err
	}
	if out.Leases, err = toCount("number of leases", i.GetLeases()); err != nil {
		return contract.Info{}, err
	}
	if out.Adapters, err = toTexts[string]("adapter", i.GetAdapters()); err != nil {
		return contract.Info{}, err
	}
	if err := checkList("frameworks", len(i.GetFrameworks())); err != nil {
		return contract.Info{}, err
	}
	for _, f := range i.GetFrameworks() {
		framework, err := frameworkToCore(f)
		if err != nil {
			return contract.Info{}, err
		}
		out.Frameworks = append(out.Frameworks, framework)
	}
	return out, nil
}

func frameworkToCore(f *pb.Framework) (contract.Framework, error) {
	out := contract.Framework{Name: f.GetName(), Version: f.GetVersion()}
	err := errors.Join(checkText("framework", out.Name), checkText("version", out.Version),
		checkList("quirks", len(f.GetQuirks())))
	if err != nil {
		return contract.Framework{}, err
	}
	for _, q := range f.GetQuirks() {
		quirk, err := quirkToCore(q)
		if err != nil {
			return contract.Framework{}, err
		}
		out.Quirks = append(out.Quirks, quirk)
	}
	return out, nil
}

func quirkToCore(q *pb.Quirk) (contract.Quirk, error) {
	effect, err := enumToCore(effects(), q.GetEffect())
	if err != nil {
		return contract.Quirk{}, err
	}
	choices, err := toTexts[string]("choice", q.GetChoices())
	if err != nil {
		return contract.Quirk{}, err
	}
	out := contract.Quirk{
		ID: core.QuirkID(q.GetId()), Framework: q.GetFramework(), Since: q.GetSince(), Until: q.GetUntil(),
		Protocol: q.GetProtocol(), Summary: q.GetSummary(), Remedy: q.GetRemedy(), Effect: effect, Upstream: q.GetUpstream(),
		Choices: choices,
	}
	return out, errors.Join(checkText("quirk", q.GetId()), checkText("framework", out.Framework),
		checkText("version", out.Since), checkText("version", out.Until), checkText("protocol", out.Protocol),
		checkText("summary", out.Summary), checkText("remedy", out.Remedy), checkText("upstream", out.Upstream))
}

func settingsToCore(s *pb.Settings) (contract.Settings, error) {
	out := contract.Settings{Program: s.GetProgram(), CopyMappedFiles: s.GetCopyMappedFiles()}
	if err := errors.Join(checkText("program", out.Program), checkList("adapters", len(s.GetAdapters()))); err != nil {
		return contract.Settings{}, err
	}
	var err error
	if out.Promote, err = enumToCore(promotePolicies(), s.GetPromote()); err != nil {
		return contract.Settings{}, err
	}
	if out.GPUs, err = gpusToCore(s.GetGpus()); err != nil {
		return contract.Settings{}, err
	}
	for _, a := range s.GetAdapters() {
		policy, copyErr := enumToCore(copyPolicies(), a.GetCopy())
		sync, syncErr := enumToCore(syncPolicies(), a.GetSync())
		if err := errors.Join(copyErr, syncErr); err != nil {
			return contract.Settings{}, err
		}
		disabled, listErr := toTexts[core.QuirkID]("quirk", a.GetDisabledQuirks())
		effects, mapErr := quirkEffectsToCore(a.GetQuirkEffects())
		if err := errors.Join(listErr, mapErr, checkText("adapter", a.GetName())); err != nil {
			return contract.Settings{}, err
		}
		out.Adapters = append(out.Adapters, contract.AdapterSettings{
			Name: a.GetName(), Copy: policy, Sync: sync, DisabledQuirks: disabled, QuirkEffects: effects,
		})
	}
	return out, nil
}

func quirkEffectsToCore(chosen map[string]string) (map[core.QuirkID]string, error) {
	if err := checkList("quirks", len(chosen)); err != nil || len(chosen) == 0 {
		return nil, err
	}
	out := make(map[core.QuirkID]string, len(chosen))
	for id, effect := range chosen {
		if err := errors.Join(checkText("quirk", id), checkText("effect", effect)); err != nil {
			return nil, err
		}
		out[core.QuirkID(id)] = effect
	}
	return out, nil
}

func toCount(what string, n int64) (int, error) {
	if n < 0 {
		return 0, fmt.Errorf("%s %d", what, n)
	}
	return toInt(what, n)
}

func toTexts[S ~string](what string, list []string) ([]S, error) {
	if err := checkList(what+"s", len(list)); err != nil {
		return nil, err
	}
	var out []S
	for _, s := range list {
		if err := checkText(what, s); err != nil {
			return nil, err
		}
		out = append(out, S(s))
	}
	return out, nil
}

func checkList(what string, n int) error {
	if n > maxList {
		return fmt.Errorf("%d %s, expected at most %d", n, what, maxList)
	}
	return nil
}

func checkText(what, s string) error {
	if len(s) > maxText {
		return fmt.Errorf("%s of %d bytes, expected at most %d", what, len(s), maxText)
	}
	return nil
}
