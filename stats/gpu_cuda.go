//go:build cuda

package stats

import (
	"context"
	"math"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats/internal/kernels"
)

// onDevice is a summer with the kernels on one GPU.
type onDevice struct{ *kernels.Device }

// roomFor gives memory for a copy of v. The GPU that v lies on reaches it, so that it can compare later versions with it.
func roomFor(v *core.View) (core.Memory, core.Device) {
	if d := v.Device(); d.Kind == core.CUDA && v.Len() > 0 {
		if m, err := kernels.Pinned(d.Index, int(v.NBytes())); err == nil {
			return m, core.Device{Kind: core.CUDAPinned, Index: d.Index}
		}
	}
	return make(memory, v.NBytes()), core.Device{}
}

// onGPU gives the summer of v, less base, if v lies in memory of a GPU, and base there or in memory that the GPU reaches. It gives nil if the CPU must read them: also where the
// kernels cannot be brought to the GPU, which an error of what follows may say better.
func onGPU(ctx context.Context, v, base *core.View) (summer, error) {
	device := v.Device()
	if device.Kind != core.CUDA || v.Len() == 0 || v.Rank() > kernels.MaxAxes {
		return nil, nil //nolint:nilnil // what is nil reads here
	}
	if base != nil && base.Device() != device && base.Device() != (core.Device{Kind: core.CUDAPinned, Index: device.Index}) {
		return nil, nil //nolint:nilnil // likewise
	}
	d, err := kernels.Open(ctx, device.Index)
	switch {
	case err == nil:
		return onDevice{d}, nil
	case ctx.Err() != nil:
		return nil, &core.Error{Op: "stats", Object: v.Name(), Kind: ctx.Err(), Err: context.Cause(ctx)}
	default:
		return nil, nil //nolint:nilnil // see above
	}
}

func (d onDevice) release() { d.Release() }

// sum implements summer. The kernels sum up scaled elements where those or their squares might leave the range of float64. That is only
// known after a first sum, whose extremes are right in any case.
func (d onDevice) sum(ctx context.Context, p *plan, src *source, count bool, edges []float64) (moments, *counter, error) {
	j := jobOf(p, src, count, edges)
	if src.base == nil && src.view.DType().Bits() <= 8 && !src.view.DType().Opaque() {
		return d.patterns(ctx, j, src, edges)
	}
	var c *counter
	if count {
		c = newCounter(edges)
		j.BinScale, j.Wrong = c.scale, c.placing.half-c.placing.sure
	}
	const tries = 3 // elements may change meanwhile
	for try := 1; ; try++ {
		parts, counts, err := d.Sum(ctx, j)
		if err != nil {
			return moments{}, nil, err
		}
		sums := make([]moments, len(parts))
		for i, part := range parts {
			sums[i] = momentsOf(part, j.Scale)
		}
		all := pairwise(sums)
		scale := scaleOf(all.low, all.high)
		if scale != j.Scale && try < tries {
			j.Scale = scale
			continue
		}
		if c != nil {
			c.take(counts.Bins, counts.Below, counts.Above, src.repeats)
		}
		return all, c, nil
	}
}

// take takes over what a GPU has counted.
func (c *counter) take(bins []int, below, above, repeats int) {
	for i, n := range bins {
		c.counts[i] = n * repeats
	}
	c.below, c.above = below*repeats, above*repeats
}

// patterns is sum for elements of which there are few different ones: the GPU counts those.
func (d onDevice) patterns(ctx context.Context, j *kernels.Job, src *source, edges []float64) (moments, *counter, error) {
	var c *counter
	if j.Count {
		c = newCounter(edges)
	}
	j.Patterns, j.Count, j.Edges = true, false, nil
	_, counts, err := d.Sum(ctx, j)
	if err != nil {
		return moments{}, nil, err
	}
	var all moments
	for pattern, n := range counts.Bins {
		if n == 0 {
			continue
		}
		var x [1]float64
		src.from.read(x[:], []byte{byte(pattern)}, 0, 0) //nolint:gosec // there are 256 of them
		m, finite := block(x[:])
		m.repeated(n)
		all.merge(&m)
		if c != nil {
			c.add(x[:finite], n*src.repeats)
		}
	}
	return all, c, nil
}

// jobOf says what the plan reads of the source.
func jobOf(p *plan, src *source, count bool, edges []float64) *kernels.Job {
	j := &kernels.Job{
		From: walkerOn(src), Total: src.n, Seed: p.seed, Scale: 1, Count: count, Edges: edges,
	}
	if p.runLen > 0 {
		j.Chunks, j.Run = p.chunks, p.runLen
	}
	if src.base != nil {
		j.Base = new(walkerOn(src.base))
	}
	return j
}

func walkerOn(src *source) kernels.Walker {
	w := kernels.Walker{View: src.view, First: src.from.first}
	for _, a := range src.from.axes {
		w.Axes = append(w.Axes, kernels.Axis{Dim: a.dim, Stride: a.stride})
	}
	return w
}

// momentsOf gives the moments of a part whose elements were scaled.
func momentsOf(p kernels.Part, scale float64) moments {
	m := moments{
		nan: p.NaN, posInf: p.PosInf, negInf: p.NegInf, zero: p.Zero, negative: p.Negative, plus: p.Finite - p.Zero - p.Negative,
	}
	if p.Finite > 0 {
		m.low, m.high = p.Low, p.High
		m.mean = min(max(p.Mean/scale, m.low), m.high)
		m.std = math.Sqrt(p.Squares/float64(p.Finite)) / scale
		m.bound()
	}
	return m
}
