"""Where a mistake may end otherwise than in PyTorch, with the reason, for test_errors.py.

A line is (case, ours, PyTorch's): patterns of "op [what was changed]" and of what came of it, which
is "gives" for a result and "Class: text" for an exception.
"""

from __future__ import annotations

import re

ANY = ""
GIVES = "^gives$"
RUNTIME = "^RuntimeError"
DTYPE = "^NotImplementedError: .*(not implemented for|does not support)"

ACCEPTED = [
    # ---- classes --------------------------------------------------------------------------------
    # A dtype that an op does not take is a NotImplementedError, which is a RuntimeError, whatever
    # else is wrong with the call; in PyTorch the class depends on which check comes first.
    (ANY, DTYPE, "^(RuntimeError|TypeError|IndexError|ValueError|OverflowError)"),
    # All arguments are read before an op looks at them, so that a wrong type is a TypeError.
    (ANY, "^TypeError", "^(AttributeError|ValueError|OverflowError|ZeroDivisionError)"),
    (ANY, "^TypeError", "^RuntimeError: .*(cannot be converted to type|Overflow when unpacking)"),
    (ANY, "^TypeError", "^RuntimeError: .*unable to construct|^RuntimeError: .*must be"),
    (ANY, "^OverflowError", "^(RuntimeError|ValueError|TypeError)"),
    (ANY, "^ValueError", "^(TypeError|RuntimeError): .*(Overflow when unpacking|too large)"),
    # A method called with a number in place of its tensor: PyTorch stops at the descriptor.
    (ANY, ANY, "^TypeError: descriptor "),
    # PyTorch takes sizes of tensors with too few dims before it looks at the shape.
    (ANY, RUNTIME, "^IndexError: .*(Dimension out of range|but tensor has no dimensions)"),
    (ANY, "^IndexError", "^(RuntimeError|TypeError): .*(shape mismatch|setStorage|as element)"),
    # Losses name the shape of the target that they want with one class.
    ("nll_loss|cross_entropy", "^ValueError: .*Expected target", RUNTIME),
    ("nll_loss|cross_entropy|_pool|_norm|huber_loss|unravel_index", RUNTIME, "^ValueError"),
    ("pixel_", RUNTIME, "^ValueError: .*(too large|overflow)"),
    # One text for indices out of range, with the class of Python's own indexing.
    (ANY, "^IndexError: .*index .* is out of ", "^(RuntimeError|IndexError)"),
    ("slice_", "^ValueError: .*step must be positive", RUNTIME),
    (ANY, "^OutOfMemoryError", RUNTIME),
    ("norm", "^IndexError: .*reduction dim", RUNTIME),
    # ---- what we take and PyTorch does not ------------------------------------------------------
    # A number stands for a tensor in all ops of elements, in any place: torch.eq(2, x).
    (ANY, GIVES, "^TypeError: .*must be Tensor, not (int|float|bool|complex|numpy)"),
    (
        ANY,
        GIVES,
        r"^TypeError: .*invalid combination of arguments - got .*(int|float|bool|complex)",
    ),
    # Different dtypes promote.
    (
        ANY,
        GIVES,
        "^RuntimeError: .*(did not match|expected scalar type|mixed dtype|Found dtype|same dtype"
        "|different dtypes|dtypes match|Type promoting|can't be cast|same type|scalar type)",
    ),
    # More dtypes.
    (ANY, GIVES, "not implemented for|not supported|[Uu]nsupported|does not support|only supports"),
    ("index_add|histogram|bincount", GIVES, "^RuntimeError"),
    # A call without dim= is the one over all, or over the last dim.
    (
        r"one less|None\]",
        GIVES,
        "^TypeError: .*(missing|invalid combination|must be int, not None)",
    ),
    (ANY, GIVES, "^TypeError: .*must be tuple of (ints|Tensors), not (int|Tensor|list)"),
    ("chain_matmul", ANY, "^TypeError: expected Tensor as element 0 in argument 0, but got list"),
    # Transforms of no rows are empty.
    (r"^fft\.", GIVES, "MKL FFT error"),
    # Shapes on meta, wherever they do not depend on values.
    ("on meta", GIVES, "^NotImplementedError"),
    ("on meta", "^NotImplementedError: .*meta", ANY),
    ("an out on meta", "^RuntimeError: .*same device", "^NotImplementedError|^gives"),
    # Reflectors beyond the last tau are none; a convolution with no outputs is empty.
    ("^ormqr", GIVES, "tau.shape"),
    (r"conv\dd.*no rows", GIVES, "expected weight to be at least"),
    # A sum over no dims, an integral or a norm of 0-d tensors, flat views of transposed ones.
    ("^logsumexp", GIVES, "broadcast shape"),
    ("^(trapezoid|norm_except_dim)", GIVES, "^IndexError"),
    ("^(isin|kron|take_along_dim)", GIVES, "view size is not compatible"),
    # Factors of products may be complex, slopes larger than an int64.
    ("^(add|baddbmm|lerp)", GIVES, "cannot be converted to type double"),
    (r"1180591620717411303424\]", GIVES, "^OverflowError"),
    # The ops of elements cast their result to any out= that can hold it.
    ("an? (float32|complex|expanded|integer|bool) out", GIVES, "^RuntimeError|^TypeError"),
    # All ops have out=.
    (" out|as out", ANY, "keyword argument 'out'|out="),
    # ---- what PyTorch takes and we do not -------------------------------------------------------
    # Dtypes and mixtures that test_dtypes.py lists as lacking.
    (ANY, DTYPE, GIVES),
    ("^(addr|bmm)", "must have the same dtype|to have the same dtype", GIVES),
    # It reads triangular matrices of another dtype as bytes, and adds biases of another dtype.
    ("^linalg.solve_triangular", "same dtype", GIVES),
    (r"\.conv", "bias type", GIVES),
    # A result in an out= of smaller dtype would be cut off; one in an expanded out= overlaps; one
    # that requires a gradient would not get it.
    ("an (integer|bool) out|a bool out", "can't be cast", ANY),
    ("an expanded (out|target)", "more than one element", ANY),
    ("an out that requires grad", "automatic differentiation", GIVES),
    ("a number as out", "^TypeError", RUNTIME),
    (r"_ \[", "can't be cast", "^(TypeError|NotImplementedError)"),
    # Old arguments, and flags that may be any object.
    ("one more|center|stable|None", "^TypeError", GIVES),
    ("^(atleast_|block_diag).*one less", "^TypeError", GIVES),
    # Matrices without elements that are not square.
    ("^(cholesky|linalg.cond)", "square matrices|at least 2 dimensions", GIVES),
    # Sizes that a call cannot mean: pools to nothing, huge strides, biases that broadcast.
    ("adaptive_", RUNTIME, GIVES),
    ("conv|pool", "is out of range", GIVES),
    ("linear", "^RuntimeError: .*bias", GIVES),
    ("cross_entropy", "label_smoothing", GIVES),
    ("_norm", "^ValueError: .*Expected more than 1|^RuntimeError: .*should contain", GIVES),
    ("tril_indices|triu_indices", "^OutOfMemoryError", GIVES),
    ("where", "to be a boolean tensor", "^TypeError"),
    # Where a tuple belongs, an int is one of one number.
    (r"1: 1\]$", RUNTIME, "^TypeError: .*must be tuple of ints, not int"),
    # Lists of tensors and indices may hold None, or nothing; index_put wants one index.
    ("^index_put", ANY, "^TypeError: .*as element|^RuntimeError: .*ASSERT"),
    ("^(_foreach_norm|chain_matmul|cartesian_prod|linalg.multi_dot) ", ANY, ANY),
    # Indices of any integer dtype, where the op says so; others even when there are none.
    ("^(put|take|tensor_split|nn.functional.cross_entropy).*uint8", GIVES, "long|int32/int64"),
    ("^index_fill.*uint8|^index_fill.*one dim more", ANY, "^(IndexError|RuntimeError)"),
    ("^gather", "for index", GIVES),
    ("^index_copy", "^IndexError", RUNTIME),
    ("^(index_add|take_along_dim|roll)", "out of (bounds|range)", GIVES),
    # Number arguments of either kind; NaN as a limit is a mistake.
    ("alpha: True|beta: True|dx: |1: True", GIVES, RUNTIME),
    ("hardtanh|threshold", "integral input|cannot be greater", GIVES),
    ("hardtanh", GIVES, "negative limits"),
    ("pinv|matrix_rank", "^OverflowError|must be real", "^gives|^TypeError"),
    # Shapes that PyTorch's way of computing cannot take, or takes by chance.
    ("^linalg.lstsq", GIVES, ANY),
    ("^linalg.(lu_factor|ldl_solve|ldl_factor)|^istft|^nuclear_norm|^bincount", ANY, ANY),
    ("soft_margin_loss", GIVES, "broadcast shape"),
    ("trapezoid.x", ANY, ANY),
    (
        "^(combinations|chunk|unsafe_chunk|roll|slice_copy|tril_indices|triu_indices)",
        GIVES,
        RUNTIME,
    ),
    ("^(stft|norm_except_dim|frobenius_norm|repeat_interleave|prelu)", GIVES, RUNTIME),
    (r"^linalg\.(tensorinv|vander)", GIVES, RUNTIME),
    ("adaptive_.*1: ", GIVES, "output_size|has no len"),
    (r"conv\dd \[4", "should be the same|out of range", "^gives|^IndexError"),
    (r"conv\dd .*no columns", GIVES, "^RuntimeError: Only zero batch"),
    ("instance_norm .*no rows", GIVES, "^IndexError"),
    ("batch_norm|group_norm", RUNTIME, "^(IndexError|ZeroDivisionError)"),
    ("triangular_solve|unflatten", "^IndexError", RUNTIME),
    ("^stft", "^TypeError", RUNTIME),
    ("^unravel_index", "overflow", GIVES),
    ("linear .*one dim less", "must be a matrix", GIVES),
    # A dtype of ours is none of theirs.
    (r"^view\.dtype", RUNTIME, "rushlight.dtype"),
    (
        "^index_reduce|^repeat_interleave",
        "^(NotImplemented|Runtime)Error",
        "(NotImplemented|Runtime)",
    ),
    # Only the call over all elements has out=; a leaf is not written, even by logical_not_.
    ("^(median|nanmedian) .*out", ANY, "^TypeError"),
    ("^logical_not_ .*leaf", RUNTIME, GIVES),
    ("^(complex|diff|prelu|cosine_similarity)", GIVES, "not on the expected device|floating point"),
    ("softmax", GIVES, "^TypeError: .*missing"),
    # A negative number wraps around in an unsigned dtype, as in fill_.
    ("^masked_fill.*uint8", GIVES, "without overflow"),
    ("batch_norm.*eps", GIVES, "^ValueError: .*must be positive"),
    ("^segment_reduce", ANY, ANY),
    ("^view_as_complex.*no rows", GIVES, "with stride 1"),
    ("^lerp", GIVES, "expected dtype"),
    ("^add ", "at least one argument must be a Tensor", GIVES),
    # ---- values ---------------------------------------------------------------------------------
    # Factors of NaN and of singular matrices are what LAPACK happens to leave.
    (r"^(linalg\.|cholesky|geqrf|qr|svd|slogdet|inverse|lu|triangular|ormqr).*NaN", GIVES, GIVES),
    # Signs of eigenvectors and singular vectors, and which of equal elements is found.
    (r"^(linalg\.(eig|eigh|svd|qr|lu|lu_factor|cond)|svd|qr|geqrf) ", GIVES, GIVES),
    ("^(kthvalue|topk|mode|median|nanmedian) ", GIVES, GIVES),
    # Searches in what is not sorted; polynomials of degrees that are no numbers.
    ("^(searchsorted|bucketize) .*twice", GIVES, GIVES),
    (r"^special\..*polynomial.*(NaN first|nan|inf|9223372036854775807)", GIVES, GIVES),
    # What overflows: decimals, degrees, steps, factors and slopes.
    (r"(inf|nan|9223372036854775807|-9223372036854775808|True)\]", GIVES, GIVES),
    # Bugs of PyTorch: the conjugate in out=, the least int64, NaN in a wide window, empty images
    # and matrices, NaN that padding spreads.
    ("^(fft.ihfftn .* out|gcd|kaiser_window|pixel_unshuffle|addmv .*no rows)", GIVES, GIVES),
    ("^(stft .*NaN|cumulative_trapezoid.*one dim more)", GIVES, GIVES),
    # Factors, as they broadcast.
    ("^(linalg.solve_ex|triangular_solve|linalg.vander)", GIVES, GIVES),
    # The dtype of a mixture is that of its promotion.
    (
        "^(nn.functional|cosine_similarity|ldexp|cdist|unravel_index|vander|trapezoid)",
        GIVES,
        GIVES,
    ),
]

SKIPPED = [
    # PyTorch crashes.
    r"^linalg.lstsq .*(NaN|no columns)",
    r"^(linalg.)?matrix_power .*-9223372036854775808",
    "^max_pool1d .*9223372036854775807",
    "^linalg.eigvals .*NaN",
    "^lu_unpack .*[01]: ",
    "^segment_reduce .*(twice|one row)",
]


def is_accepted(case: str, ours: str, theirs: str) -> bool:
    """Whether a difference has a reason in the table."""
    return any(
        re.search(where, case) and re.search(a, ours, re.S) and re.search(b, theirs, re.S)
        for where, a, b in ACCEPTED
    )


def is_skipped(case: str) -> bool:
    """Whether a call would end PyTorch's process, or has no single answer."""
    return any(re.search(where, case) for where in SKIPPED)
