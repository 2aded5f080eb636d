"""Trees of values: flatten, unflatten, map, paths, specifications as text. Values as PyTorch 2.13 gives them."""

from __future__ import annotations

import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from hypothesis import given, strategies as st

from mindtorch_v2.fx.immutable_collections import immutable_dict, immutable_list
from mindtorch_v2.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE = {
    "b": [1, (2, 3)],
    "a": None,
    "n": Point(1, [2]),
    "o": OrderedDict(z=1, a=2),
    "d": defaultdict(list, {1: 2}),
    "q": deque([1, 2], maxlen=3),
}
trees = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.tuples(inner, inner).map(lambda pair: Point(*pair)),
        st.dictionaries(st.integers(), inner, max_size=2).map(OrderedDict),
        st.lists(inner, max_size=2).map(deque),
    ),
    max_leaves=10,
)


@given(trees)
def test_round_trip(tree):
    leaves, spec = pytree.tree_flatten(tree)
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert spec.num_leaves == len(leaves) and leaves == pytree.tree_leaves(tree)
    assert spec == pytree.tree_structure(tree) and hash(spec) == hash(pytree.tree_structure(tree))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert [leaf for _, leaf in pytree.tree_leaves_with_path(tree)] == leaves
    assert all(pytree.key_get(tree, path) == leaf for path, leaf in pytree.tree_leaves_with_path(tree))


def test_order_and_representation():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, 3, None, 1, 2, 1, 2, 2, 1, 2]
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (11, 19, 6)
    assert repr(pytree.tree_structure([1, {"a": 2}])) == "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [*])])"
    assert pytree.treespec_pprint(pytree.tree_structure({"a": [1, (2,)]})) == "{'a': [*, (*,)]}"
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(TREE)][:5] == [
        "['b'][0]",
        "['b'][1][0]",
        "['b'][1][1]",
        "['a']",
        "['n'].x",
    ]


def test_map():
    assert pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {"a": (1, 4), "b": (2, 3)}
    assert pytree.tree_map_only(int, lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 2.0]
    assert pytree.tree_map_only(lambda x: isinstance(x, str), str.upper, [1, "a"]) == [1, "A"]
    assert pytree.tree_map(lambda a, b: (a, b), [1], [[1, 2]]) == [(1, [1, 2])]
    assert pytree.tree_all(lambda x: x > 0, [1, 2]) and not pytree.tree_any(lambda x: x > 2, [1, 2])
    seen = []
    tree = [1, {"a": 2}]
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2]
    assert pytree.tree_map_with_path(lambda path, x: pytree.keystr(path), {"a": [1]}) == {"a": ["['a'][0]"]}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pytree.tree_map(max, {"a": 1}, {"b": 3}),
            "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}.",
        ),
        (lambda: pytree.tree_map(max, [1, 2], [1]), "Node arity mismatch; expected 2, but got 1."),
        (
            lambda: pytree.tree_map(max, [1], (1,)),
            "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>.",
        ),
        (
            lambda: pytree.tree_unflatten([1, 2], pytree.tree_structure([1])),
            "treespec.unflatten(leaves): `leaves` has length 2 but the spec refers to a pytree that holds 1 items "
            "(TreeSpec(list, None, [*])).",
        ),
        (lambda: pytree.register_pytree_node(list, None, None), "<class 'list'> is already registered as pytree node."),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message


def test_broadcast():
    spec = pytree.tree_structure((1, [2, 3]))
    assert pytree._broadcast_to_and_flatten((0, 1), spec) == [0, 1, 1]
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten((0,), spec) is None


def test_registered_type():
    class Box:
        def __init__(self, value):
            self.value = value

    pytree.register_pytree_node(
        Box,
        lambda box: ([box.value], "context"),
        lambda values, context: Box(*values),
        serialized_type_name="tests.Box",
    )
    try:
        assert pytree.tree_leaves([Box([1, 2]), 3]) == [1, 2, 3]
        spec = pytree.tree_structure(Box(1))
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
        with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
            pytree.tree_flatten_with_path(Box(1))
    finally:
        pytree._deregister_pytree_node(Box)
    box = Box(1)
    assert pytree.tree_leaves(box) == [box]


def test_specifications_as_text():
    tree = {"b": [1, (2, 3)], "d": defaultdict(list, {1: 2}), "n": 1}
    text = pytree.treespec_dumps(pytree.tree_structure(tree))
    assert text.startswith('[1, {"type": "builtins.dict", "context": "[\\"b\\", \\"d\\", \\"n\\"]"')
    assert pytree.treespec_loads(text) == pytree.tree_structure(tree)
    with pytest.raises(ValueError, match="Unknown protocol 7"):
        pytree.treespec_loads("[7, null]")


def test_named_tuples_as_text():
    """Classes of named tuples have a name in texts when one was registered, and are nodes all along."""
    cls = namedtuple("cls", "x y")
    spec = pytree.tree_structure(cls(1, 2))
    with pytest.raises(NotImplementedError, match="Please register using `_register_namedtuple`"):
        pytree.treespec_dumps(spec)
    pytree._register_namedtuple(cls, serialized_type_name="tests.cls")
    assert pytree.tree_structure(cls(1, 2)).type is namedtuple
    text = pytree.treespec_dumps(spec)
    assert '"collections.namedtuple", "context": "tests.cls"' in text and pytree.treespec_loads(text) == spec
    with pytest.raises(NotImplementedError, match="we couldn't find a serializated name"):
        pytree.treespec_loads(text.replace("tests.cls", "tests.other"))


def test_registering_by_the_former_name_warns():
    class Node:
        pass

    for kind, words in ((FutureWarning, "_register_pytree_node` is deprecated"), (UserWarning, "already registered")):
        with pytest.warns(kind, match=words):
            pytree._register_pytree_node(Node, lambda node: ([], None), lambda values, context: Node())
    with pytest.raises(NotImplementedError, match="No registered serialization name for"):
        pytree.treespec_dumps(pytree.tree_structure(Node()))


def test_collections_that_do_not_change():
    items, table = immutable_list([1, 2]), immutable_dict(a=1)
    for change in (items.append, items.extend, items.__setitem__, table.update, table.pop):
        with pytest.raises(TypeError, match="object does not support mutation"):
            change(0)
    assert (hash(items), hash(table)) == (hash((1, 2)), hash(frozenset({("a", 1)})))
    for tree in (items, table):
        assert type(pytree.tree_map(lambda x: x + 1, tree)) is type(tree) is type(pickle.loads(pickle.dumps(tree)))
        spec = pytree.tree_structure(tree)
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
