"""Steps that make, change and drop PyTorch's tensors."""

import torch
from numpy_steps import pick, size_of, step, target
from places import DERIVED as DERIVED_ANYWHERE

STEPS = []
SLOTS = ["net.layer.weight", "net.layer.bias", "net.layer.weight.grad"]
DERIVED = ["x4.data", "x5.grad", "x6.T", "o.a.data"]
VIEWING = [name for name in DERIVED + DERIVED_ANYWHERE if name.endswith((".T", ".real"))]  # by these a tensor gives a view of itself
DTYPES = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool".split()


class Net(torch.nn.Module):
    """A model of one layer."""

    def __init__(self, n, m):
        super().__init__()
        self.layer = torch.nn.Linear(n, m)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(torch.arange(p.numel(), dtype=p.dtype).reshape(p.shape) + i)


def exported():
    return {"torch": torch, "Net": Net, "tensor": tensor}


def tensor(shape, dtype, seed):
    """A tensor of its own memory, full of noise."""
    import helpers

    t = torch.zeros(shape, dtype=getattr(torch, dtype))
    if t.numel():
        helpers.fill(t.data_ptr(), t.numel() * t.element_size(), seed, dtype == "bool")
    return t


def reset(scope):
    torch.set_num_threads(1)
    scope.pop("net", None)


def sound(t):
    """Whether PyTorch can touch a tensor: it ends the process if the storage is too small."""
    if t.layout is not torch.strided or t.device.type != "cpu":
        return False
    last = t.storage_offset() + sum((n - 1) * stride for n, stride in zip(t.shape, t.stride()))
    return t.numel() == 0 or (last + 1) * t.element_size() <= t.untyped_storage().nbytes()


def some(dice, places, want=sound):
    return pick(dice, places, want, torch.Tensor)


def extents(dice):
    n = max(1, size_of(dice) // 8)
    return dice.choice([(n,), (n,), (n // 3, 3), (2, n // 2), ()] if n < 40 else [(n,), (n // 3, 3), (2, n // 2)])


def fresh(dice):
    return "tensor(%r, %r, %d)" % (extents(dice), dice.choice(DTYPES), dice.randrange(1 << 20))


@step(STEPS, 9, writes=False)
def torch_create(dice, places):
    return "%s = %s" % (target(dice), fresh(dice))


LAYOUTS = [
    "{s}.t()", "{s}[::2]", "{s}[1:]", "{s}.unsqueeze(0)", "{s}.expand(2, *{s}.shape)", "{s}.view(-1)", "{s}.flatten()", "{s}[0]", "{s}.detach()",
    "{s}.clone()", "{s}.contiguous()", "{s}.conj()", "{s}.conj().imag", "{s}.real", "{s}.imag", "{s}.resolve_conj()", "{s}.view(torch.uint8)",
    "{s}.data", "torch.nn.Parameter({s})", "{s}.detach().numpy()", "{s}.as_strided({s}.shape, {s}.stride())", "{s}.narrow(0, 0, 1)",
    "{s}.to(torch.float32)", "{s}.requires_grad_()", "{s}.to_sparse()", "torch.view_as_real({s})", "{s}.to('meta')", "{s}.transpose(0, -1)",
]


@step(STEPS, 9, writes=False)
def torch_layout(dice, places):
    found = some(dice, places)
    return found and "%s = %s" % (target(dice), dice.choice(LAYOUTS).format(s=found[0]))


@step(STEPS, 4, writes=False)
def torch_over_numpy(dice, places):
    found = pick(dice, places, lambda a: a.flags.writeable)  # PyTorch would write over what is read-only, too
    return found and "%s = torch.from_numpy(%s)" % (target(dice), found[0])


@step(STEPS, 8)
def torch_write(dice, places):
    found = some(dice, places)
    if not found:
        return None
    return dice.choice([
        "with torch.no_grad(): {s}.copy_(tensor({s}.shape, str({s}.dtype)[6:], {n}))", "with torch.no_grad(): {s}.add_(1)",
        "{s}.zero_()", "{s}.data.fill_(1)", "{s}.data.neg_()", "{s}.data[0] = 1", "{s}.mul_(2)",
    ]).format(s=found[0], n=dice.randrange(1 << 20))


@step(STEPS, 8)
def torch_other_memory(dice, places):
    """Give a tensor, or all that stand on a storage, other memory."""
    found, other = some(dice, places), some(dice, places)
    lost = some(dice, places, lambda t: t.layout is torch.strided and t.device.type == "cpu" and not sound(t))
    if lost and dice.random() < 0.5:
        return "{s}.untyped_storage().resize_(({s}.storage_offset() + {s}.numel()) * {s}.itemsize * 2); {s}.untyped_storage().fill_(0)".format(s=lost[0])
    if not found or not other:
        return None
    path, t = found
    statements = [
        "{s}.set_({o})", "{s}.data = {o}", "{s}.data = {o}.clone()", "{s}.data = {s}.data + 1", "{s}.data = " + fresh(dice),
        "{s}.set_()", "{s}.resize_(0)", "{s}.t_()", "{s}.requires_grad_(False)",
        "{s}.unsqueeze_(0)", "{s}.squeeze_()",
    ]
    # A look at x6.T is Python's: while it runs there is another tensor, which PyTorch counts as a use of x6.
    looked_into = [places.held(name.rpartition(".")[0]) for name in VIEWING]
    if not any(t is o or other[1] is o for o in looked_into):
        statements.append("torch.utils.swap_tensors({s}, {o})")
    if not t.is_shared():  # then PyTorch would write beyond its end
        statements += ["{s}.resize_({n}).zero_()", "{s}.resize_({n}).zero_()", "{s}.untyped_storage().resize_(0)"]
    if not places.shares(t):
        statements.append("{s}.share_memory_()")
    return dice.choice(statements).format(s=path, o=other[0], n=dice.choice([1, 10, 9000, 20000]))


@step(STEPS, 4)
def torch_train(dice, places):
    """A model, whose parameters an optimizer changes, and a loop that gives them other memory."""
    n, m = dice.choice([(3, 2), (128, 200)])
    return dice.choice([
        "net = Net(%d, %d)" % (n, m), "net.layer(torch.ones(net.layer.in_features)).sum().backward()",
        "torch.optim.SGD(net.parameters(), 0.1).step()", "net.zero_grad()", "net.zero_grad(set_to_none=False)",
        "net.layer.weight.data = net.layer.weight.data + 1", "net.layer.weight = torch.nn.Parameter(net.layer.weight.detach() * 2)",
        "net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})", "net.double()", "net.float()", "del net",
        "publish('p0', net.layer.weight)", "net.layer.weight.requires_grad_(False)",
    ])


@step(STEPS, 2, writes=False)
def torch_round_trip(dice, places):
    found = some(dice, places)
    return found and "%s = %s" % (target(dice), dice.choice(["pickle.loads(pickle.dumps(%s))", "copy.deepcopy(%s)"]) % found[0])
