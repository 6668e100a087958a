"""Where a call may end otherwise than in PyTorch, with the reason.

A line is (case, ours, PyTorch's): patterns of "op [what was changed]" in test_errors.py, or of
"op [dtype number form what]" in test_op_database.py, and of what came of it, which is "gives" for a
result and "Class: text" for an exception. Where both give something, PyTorch's is
"gives shape (2,), not (1,)", "gives float64, not float32" or "gives values of float64", with the
number of the result in front where there are several.
"""

from __future__ import annotations

import re

Table = list[tuple[str, str, str]]
ANY = ""
GIVES = "^gives$"
GIVEN = "^gives "
VALUES = r"^gives (\d: )?values of \S+$"
RUNTIME = "^RuntimeError"
DTYPE = "^NotImplementedError: .*(not implemented for|does not support)"

ACCEPTED = [
    # Classes
    # In PyTorch 2.14 some are others.
    (ANY, "^RuntimeError: .*a bool (tensor|input)", "^NotImplementedError: .*bool"),
    (r"^fft\.(rfft|ihfft)", DTYPE, "^TypeError: .*(real|floating-point)"),
    ("^istft", "^RuntimeError: .*complex-valued", "^TypeError"),
    (r"^linalg\.cond", "^RuntimeError: .*(invalid norm|a real number)", "^ValueError"),
    # A dtype that an op does not take is a NotImplementedError, which is a RuntimeError, whatever
    # else is wrong with the call; in PyTorch the class depends on which check comes first.
    (ANY, DTYPE, RUNTIME),
    (ANY, DTYPE, "^TypeError: .*(must be Tensor, not|invalid combination|integer dtype|be cast)"),
    ("softmax", DTYPE, "^TypeError: .*missing"),
    # All arguments are read before an op looks at them, so that a wrong type is a TypeError.
    (ANY, "^TypeError", "^(AttributeError|ValueError|OverflowError|ZeroDivisionError)"),
    (ANY, "^TypeError", "^RuntimeError: .*(cannot be converted to type|Overflow when unpacking)"),
    (ANY, "^OverflowError", "^(RuntimeError|ValueError|TypeError)"),
    (ANY, "^ValueError", "^(TypeError|RuntimeError): .*(Overflow when unpacking|too large)"),
    # A method called with a number in place of its tensor: PyTorch stops at the descriptor.
    (r"_ \[\d+ 0: |^where\.self ", ANY, "^TypeError: descriptor "),
    # PyTorch takes sizes of tensors with too few dims before it looks at the shape.
    (ANY, RUNTIME, "^IndexError: .*(Dimension out of range|but tensor has no dimensions)"),
    (ANY, "^IndexError", "^(RuntimeError|TypeError): .*(shape mismatch|setStorage|as element)"),
    ("nll_loss|cross_entropy|huber_loss", RUNTIME, "^ValueError: .*(Expected|input tensor)"),
    ("(_pool|_norm)", RUNTIME, "^ValueError: .*(Input (dimension|tensor)|Expected more than 1)"),
    ("lp_pool", RUNTIME, "^ValueError: .*values to unpack"),
    ("lp_pool", "^TypeError: .*norm_type", DTYPE),
    ("multilabel_margin_loss", "expected target of dtype int64", DTYPE),
    ("^unravel_index .*46116860184273879", "overflow", "^ValueError"),
    ("pixel_", RUNTIME, "^ValueError: .*(too large|overflow)"),
    # One text for indices out of range, with the class of Python's own indexing.
    (ANY, "^IndexError: .*index .* is out of ", "^(RuntimeError|IndexError)"),
    ("slice_", "^ValueError: .*step must be positive", RUNTIME),
    (ANY, "^OutOfMemoryError", RUNTIME),
    # What we take and PyTorch does not
    ("group_norm", GIVES, "to be greater than 0, got 0"),
    (r"^repeat_interleave\.index .*uint8", GIVES, "^gives int64, not uint8"),
    # A number stands for a tensor in all ops of elements, in any place: torch.eq(2, x).
    (ANY, GIVES, "^TypeError: .*must be Tensor, not (int|float|bool|complex|numpy)"),
    (
        ANY,
        GIVES,
        r"^TypeError: .*invalid combination of arguments - got .*(int|float|bool|complex)",
    ),
    # The order of early versions has a tensor in front and at the end.
    (r"^(add|sub)\.scaled", "^TypeError: .*takes 2 positional arguments", ANY),
    (r"^(add|sub)\.scaled", GIVES, "Boolean alpha only"),
    (r"^sub\.scaled_? .*-9223372036854775808", GIVES, VALUES),
    (r"^_int_mm .*uint8", GIVES, "Expected mat2 dtype"),
    # Between infinite ends NaN and the infinity stand in other places.
    (r"^(lin|log)space\.tensors .*inf", GIVES, VALUES),
    # Different dtypes promote.
    (
        ANY,
        GIVES,
        "^RuntimeError: .*(did not match|expected scalar type|mixed dtype|Found dtype|same dtype"
        "|different dtypes|dtypes match|Type promoting|can't be cast|same type|scalar type)",
    ),
    # More dtypes.
    (ANY, GIVES, "not implemented for|not supported|[Uu]nsupported|does not support|only supports"),
    # A call without dim= is the one over all, or over the last dim.
    (
        r"one less|None\]",
        GIVES,
        "^TypeError: .*(missing|invalid combination|must be int, not None)",
    ),
    (ANY, GIVES, "^TypeError: .*must be tuple of (ints|Tensors), not (int|Tensor|list)"),
    # Transforms of no rows are empty.
    (r"^fft\.", GIVES, "MKL FFT error"),
    # Shapes on meta, wherever they do not depend on values.
    ("on meta", GIVES, "^NotImplementedError"),
    ("on meta", "^NotImplementedError: .*meta", ANY),
    ("an out on meta", "^RuntimeError: .*same device", "^NotImplementedError|^gives"),
    ("space.tensors .an out on meta", GIVES, "cross-device copies"),
    # Reflectors beyond the last tau are none; a convolution with no outputs is empty.
    ("^ormqr", GIVES, "tau.shape"),
    (r"conv\dd.*no rows", GIVES, "expected weight to be at least"),
    # A sum over no dims, an integral or a norm of 0-d tensors, flat views of transposed ones.
    ("^logsumexp", GIVES, "broadcast shape"),
    ("^(trapezoid|norm_except_dim)", GIVES, "^IndexError"),
    ("^(isin|kron|take_along_dim)", GIVES, "view size is not compatible"),
    # Factors of products may be complex, slopes larger than an int64.
    (r"^(add(bmm|mm|mv|r)|baddbmm|lerp) .*1j\]", GIVES, "cannot be converted to type double"),
    (r"1180591620717411303424\]", GIVES, "^OverflowError"),
    # The ops of elements cast their result to any out= that can hold it.
    ("an? (float32|complex|expanded|integer|bool) out", GIVES, "^RuntimeError|^TypeError"),
    # All ops have out=.
    (" out|as out", ANY, "keyword argument 'out'|out="),
    # Scales of any floating dtype; NaN stays NaN, and whole numbers may have more than 32 bits.
    ("^fake_quantize_per_channel_affine", f"{GIVES}|'out' must be", "must be (Float|Int32)|found "),
    (r"^fake_quantize_.*(NaN|4: (-1|0|-3)\])", GIVES, f"without overflow|{VALUES}"),
    # Weights that are NaN meet the zeros beside an image, too.
    ("conv_transpose[23]d .*1: NaN first", GIVES, VALUES),
    # It gets a wrong product of one row with a transposed matrix.
    ("^_int_mm .*one row", GIVES, VALUES),
    ("^_int_mm .*an (empty out|out of another shape)", GIVES, "Expected result.size"),
    # What PyTorch takes and we do not
    # Dtypes and mixtures that test_dtypes.py lists as lacking.
    (
        r"^(adaptive_avg_pool1d|affine_grid_generator|rnn_relu(_cell|\.(data|input))|rnn_tanh_cell"
        r"|bmm|cholesky|cosine_similarity|det|dist|i?stft|trapezoid|vander"
        r"|kthvalue|mode|(linalg\.)?matrix_power|linalg\.(cholesky|det|eigh|svd|svdvals)"
        r"|nn\.functional\.(adaptive_avg_pool[23]d|binary_cross_entropy_with_logits|conv2d|mse_loss"
        r"|lp_pool[123]d|one_hot|poisson_nll_loss|smooth_l1_loss|soft_margin_loss)) ",
        DTYPE,
        GIVES,
    ),
    ("^_int_mm .*uint8", DTYPE, GIVES),
    ("^bmm", "must have the same dtype", GIVES),
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
    # Sizes that a call cannot mean: images of nothing, huge strides, one value to normalize.
    ("adaptive_.* 0: (no|one dim less)", "^RuntimeError: .*Expected .D or .D", GIVES),
    ("conv.*(9223372036854775807|4611686018427387904)", "is out of range", GIVES),
    ("cross_entropy .*label_smoothing", "must be between 0.0 and 1.0", GIVES),
    ("_norm .*no (rows|columns)", "^ValueError: .*Expected more than 1", GIVES),
    ("batch_norm .*one dim more", "^RuntimeError: .*should contain", GIVES),
    ("tril_indices|triu_indices", "^OutOfMemoryError", GIVES),
    ("where", "to be a boolean tensor", "^TypeError"),
    # Where a tuple belongs, an int is one of one number.
    (r"1: 1\]$", RUNTIME, "^TypeError: .*must be tuple of ints, not int"),
    # Lists of indices may hold None, but one must be a tensor; lists of tensors may be empty where
    # the result then is, and are not one tensor.
    ("^index_put_? .*None", GIVES, "^TypeError: .*as element"),
    (r"^index_put_? .*1: \[\]", "^IndexError: .*at least one index", "^RuntimeError: .*ASSERT"),
    ("^_foreach_norm .*0: \\[\\]", GIVES, "at least one tensor"),
    ("^_foreach_norm .*1: True", GIVES, "expects ord to be integer or float"),
    ("^(chain_matmul|cartesian_prod) .*one less", "^TypeError: .*missing", RUNTIME),
    ("^linalg.multi_dot .*its first", "at least 2 tensors", "^TypeError"),
    # Indices of any integer dtype, where the op says so; others even when there are none.
    ("^(put|take|tensor_split|nn.functional.cross_entropy).*uint8", GIVES, "long|int32/int64"),
    ("^index_fill.*uint8", "^RuntimeError: .*Expected dtype", "^IndexError: .*Expected dtype"),
    ("^index_fill.*one dim more", "^IndexError: .*to be a vector", "^RuntimeError: .*vector"),
    ("^gather", "for index", GIVES),
    ("^index_copy", "^IndexError", RUNTIME),
    ("^(index_add|take_along_dim|roll)", "out of (bounds|range)", GIVES),
    # Number arguments of either kind; NaN as a limit is a mistake.
    (r"(alpha|beta): True\]", GIVES, "Boolean (alpha|beta) only"),
    (r"dx: (True|1j)\]", GIVES, "dx as a real number"),
    ("hardtanh|threshold", "integral input|cannot be greater", GIVES),
    ("hardtanh", GIVES, "negative limits"),
    ("pinv|matrix_rank", "^OverflowError", GIVES),
    ("pinv|matrix_rank", "must be real", "^TypeError"),
    # Shapes that PyTorch's way of computing cannot take, or takes by chance.
    ("^linalg.lstsq", GIVES, "input.dim|^RuntimeError: The size of tensor"),
    ("^linalg.lstsq .*(one row|one dim more)", GIVES, "^gives .: shape"),
    # What divides by zero only in one of them: U of dependent columns, NaN, windows with NaN.
    ("^linalg.lu_factor .*twice as many columns", "is zero", GIVES),
    ("^linalg.ldl_factor .*NaN", "^LinAlgError: .*is zero", "^RuntimeError: .*ASSERT"),
    ("^istft .*NaN", "window overlap", GIVES),
    ("^linalg.ldl_solve .*uint8", "pivots to be int32", GIVES),
    # Weights of no numbers at all.
    ("^bincount .*no (rows|columns)", "weights should be 1-d", GIVES),
    ("soft_margin_loss", GIVES, "broadcast shape"),
    # The classes are the last dim of what broadcasts, not that of the input; targets are tensors.
    ("multilabel_soft_margin_loss .*(0-d|one dim less)", GIVES, "^IndexError: .*no dimensions"),
    ("multilabel_soft_margin_loss .*one dim (less|more)", GIVES, GIVEN),
    ("multilabel_soft_margin_loss", "must be Tensor, not", GIVES),
    ("multilabel_soft_margin_loss .*complex128", DTYPE, GIVES),
    ("triplet_margin_loss .*nan", "margin must be greater than 0", GIVES),
    ("multi_margin_loss .*True", "argument 'p' .* must be int, not bool", GIVES),
    # One number is a size along all dims; padding counts before windows are refused.
    ("lp_pool", GIVES, "^(ValueError: not enough values|TypeError: mul.*not list)"),
    ("avg_pool3d", GIVES, "smaller than kernel size"),
    # Places x of the samples y: dims that y has not, and fewer than y, which broadcast.
    (r"trapezoid\.x", "has no dim for dim", "^gives|^IndexError: slice"),
    (r"trapezoid\.x .*0: one dim less", GIVES, "^RuntimeError: The size of tensor"),
    (r"trapezoid\.x .*1: one dim more", GIVES, "^gives shape"),
    (
        r"^(chunk|unsafe_chunk|roll|slice_copy|tril_indices|triu_indices) .*-?9223372036854775\d+",
        GIVES,
        RUNTIME,
    ),
    ("^combinations", GIVES, "numel: integer multiplication overflow"),
    ("^stft .*no rows", GIVES, "Expected 2D or 3D|MKL FFT error"),
    ("^stft .*1: 108", GIVES, "expected 0 < n_fft"),
    ("^norm_except_dim .*no rows", GIVES, "cannot reshape tensor of 0 elements"),
    ("^frobenius_norm", GIVES, "Expected at most 2 dimensions"),
    ("^repeat_interleave.index", GIVES, "1D vector"),
    ("^linalg.tensorinv .*0-d", GIVES, "invalid slice"),
    ("^linalg.vander .*float16", GIVES, "got Half"),
    ("adaptive_.*1: ", GIVES, "output_size|has no len"),
    # Nothing is computed for no channels, so that PyTorch does not look at the rest.
    (r"conv2d \[4", "should be the same", GIVES),
    (r"conv2d \[4 1: no columns", "out of range", "^IndexError"),
    ("conv.* 0: uint8", "^RuntimeError: .*should be the same", "not implemented for 'Byte'"),
    (r"conv\dd .*no columns", GIVES, "^RuntimeError: Only zero batch"),
    ("instance_norm .*no rows", GIVES, "^IndexError"),
    ("batch_norm .*0-d", "at least 2 dims", "^IndexError: tuple"),
    ("batch_norm .*no columns", "^RuntimeError: .*should contain 0 elements", GIVES),
    ("group_norm .*1: 0", "divisible by num_groups", "^ZeroDivisionError"),
    ("triangular_solve .*(0-d|one dim less)", "^IndexError", "at least 2 dimensions"),
    ("^unflatten .*0-d", "^IndexError: .*no dim to split", RUNTIME),
    ("^stft", "^TypeError", "^RuntimeError: .*(window|expected|input)"),
    ("^unravel_index", "overflow", GIVES),
    # A dtype of ours is none of theirs.
    (r"^view\.dtype", RUNTIME, "rushlight.dtype"),
    ("^index_reduce", "^NotImplementedError: .*include_self=False", "same scalar type"),
    ("^repeat_interleave .*one less", "only accept 1D vector", "^NotImplementedError"),
    # Only the call over all elements has out=; a leaf is not written, even by logical_not_.
    ("^(median|nanmedian) .*out", ANY, "^TypeError"),
    ("^logical_not_ .*leaf", RUNTIME, GIVES),
    ("^cosine_similarity .*complex128", GIVES, "to be floating point"),
    ("^(log_)?softmax ", GIVES, "^TypeError: .*missing"),
    # A negative number wraps around in an unsigned dtype, as in fill_.
    ("^(masked|index)_fill.*uint8", GIVES, "without overflow"),
    # Lengths of booleans, and for no rows; PyTorch does not look at offsets and reads past the end.
    ("^segment_reduce .*lengths: bool", "^NotImplementedError: .*integers", "Expected all rows"),
    ("^segment_reduce .*0: no rows", "must have the sizes of data", GIVES),
    ("^segment_reduce .*offsets|^segment_reduce .*0: ", "offsets must lie between", GIVES),
    # A vector is a weight with any bias; a bias has the dtype of the weight.
    ("linear", GIVES, "mat2 must be a matrix"),
    ("linear", "must have the same dtype", GIVES),
    ("linear .2 2: one dim more", "^RuntimeError: .*does not broadcast", GIVES),
    # Here it takes a list, as other ops do; the function takes them one by one.
    ("^chain_matmul ", ANY, "^TypeError: expected Tensor as element 0 in argument 0, but got list"),
    # Quotients of integers are true quotients.
    ("^addcdiv", GIVES, "Integer division with addcdiv"),
    ("^view_as_complex.*no rows", GIVES, "with stride 1"),
    ("^view_as_complex .*float16", DTYPE, GIVES),  # there is no complex32
    ("^lerp", GIVES, "expected dtype"),
    # Bags: what stands beside the result is for PyTorch's own gradient, which leaves parts unset.
    # Entries behind the last offset belong to no bag, but its sums of float64 have them; it does
    # not check offsets that decrease, nor indices of other dtypes and of no elements.
    ("^embedding_bag ", GIVES, "^gives [123]: "),
    (r"^embedding_bag \[[67] ", GIVES, "^gives 0: values of float64, 2: "),
    (r"^embedding_bag \[\d [12]: (bool|uint8)", "scalar types: Long, Int", GIVES),
    ("^embedding_bag .* 2: twice as many", "offsets must not decrease", GIVES),
    (r"^embedding_bag \[9 1: one dim more", "indices and offsets 1-D", GIVES),
    # Grids that are not floating point, which affine_grid refuses there too; complex rows are the
    # one dtype of embeddings that is not scaled down here.
    ("^(affine_grid_generator|embedding_renorm_) ", DTYPE, GIVES),
    # Numbers of modes that there are not. Grids of another dtype, where there is no image to read.
    ("^grid_sampler", "(interpolation|padding)_mode must be", GIVES),
    (r"^grid_sampler(_2d)? \[2[01] ", "to have same dtype|not implemented for", GIVES),
    # Recurrent networks: chances of dropout where it is not used; rows, states and biases of other
    # shapes, which broadcast or are not looked at. Cells take one row, as the modules do.
    ("^(gru|lstm|rnn_)", "dropout probability has to be between", GIVES),
    (
        "^(gru|lstm|rnn_).*(data|input) ",
        "(data|batch_sizes|hidden state) must (have shape|be one)|must have 3 dim",
        "^gives|non-empty list",
    ),
    ("^(gru|lstm|rnn_).*_cell ", "b_[ih]h must have shape", GIVES),
    (r"^(gru|lstm|rnn_).*_cell \[1 ", "^gives|not implemented for", "^IndexError: Dimension out"),
    # One number in a list stands for all dims; huge ones are cut to 32 bits there.
    (r"^nn\.functional\.(un)?fold ", GIVES, "^RuntimeError: It is expected .* but got size 1"),
    (r"^nn\.functional\.unfold .*(9223372036854775807|46116860184)", "out of range", GIVES),
    (r"^nn\.functional\.fold .*bool", DTYPE, GIVES),
    ("^conv_tbc .*(1: no rows|3: -)", "is out of range", GIVES),
    ("^conv_tbc .* 2: ", "bias type", GIVES),
    # Values of padding are numbers of the dtype of the input.
    (r"functional\.pad .*value: 1180591620717411303424", "^OverflowError", GIVES),
    (r"functional\.pad .*value: 1j", "cannot be converted to type float64", "^TypeError"),
    # Values
    # Factors of NaN and of singular matrices are what LAPACK happens to leave.
    (r"^(linalg\.|cholesky|geqrf|qr|svd|slogdet|inverse|lu|triangular|ormqr).*NaN", GIVES, GIVEN),
    (r"^(linalg\.(cond|lu|lu_factor|qr)|qr|geqrf) .*twice as many", GIVES, GIVEN),
    ("^linalg.lstsq .*twice as many columns", GIVES, GIVEN),
    # Signs of eigenvectors and singular vectors, and the order of eigenvalues.
    (r"^(linalg\.)?svd ", GIVES, r"^gives [02]: values of \w+(, 2: values of \w+)?$"),
    (r"^linalg\.eigh ", GIVES, r"^gives 1: values of \w+$"),
    (r"^linalg\.eig .*last dims exchanged", GIVES, GIVEN),
    # Which of equal elements is found; of numbers that occur once, NaN is not the most common.
    ("^(kthvalue|topk|mode) ", GIVES, "^gives 1: values of int64$"),
    ("^mode .*NaN first", GIVES, GIVEN),
    # Searches in what is not sorted; polynomials of degrees that are no numbers.
    ("^(searchsorted|bucketize) .*twice", GIVES, VALUES),
    # U of matrices with dependent columns is one of many; eigenvalues of NaN are refused.
    (r"^linalg\.polar .*twice as many columns", GIVES, VALUES),
    (r"^linalg\.matrix_sqrth .*NaN", "^LinAlgError", GIVES),
    (r"^special\..*polynomial.*(NaN first|nan|inf|9223372036854775807)", GIVES, VALUES),
    # What overflows in PyTorch: decimals, degrees and steps.
    (r"^(round\.decimals|polygamma)\S* .*9223372036854775", GIVES, VALUES),
    (r"^arange\.start .*-9223372036854775808\]", GIVES, "^gives shape"),
    ("^cov .*-9223372036854775808", GIVES, VALUES),
    (r"^kaiser_window \[7 ", GIVES, VALUES),
    ("softsign .*uint8|soft_margin_loss .*1: uint8", GIVES, VALUES),
    # A target of uint8 is never -1, and its negative is negative; in PyTorch both wrap around.
    ("((hinge|cosine)_embedding|margin_ranking)_loss .*uint8", GIVES, VALUES),
    (r"^(linalg\.)?matrix_exp .*float16", GIVES, VALUES),
    # Infinite factors, ends and steps, with NaN in other places; limits that exclude everything.
    (r"^(addmm|addbmm|linspace|logspace|trapezoid) .*inf\]", GIVES, VALUES),
    (r"^_foreach_norm .*nan\]", GIVES, "^gives 1: values of float64$"),
    ("^logit_? .*eps: (nan|True)", GIVES, VALUES),
    # Bugs of PyTorch: the conjugate in out=, negative divisors of the least int64, empty images and
    # matrices, maxima that ignore NaN, NaN that padding spreads.
    ("^fft.ihfftn .* out", GIVES, "^gives (values of complex128|shape)"),
    ("^gcd_? .*100 (more|less)", GIVES, VALUES),
    ("^(pixel_unshuffle|addmv) .*no (rows|columns)", GIVES, "^gives shape"),
    (r"multi(label)?_margin_loss .*(NaN first|nan\])", GIVES, VALUES),
    ("^cdist .*NaN first", GIVES, VALUES),
    ("^stft .*NaN", GIVES, VALUES),
    # NaN in a grid stands for -1, as the documentation of grid_sample has it. Circular padding that
    # also takes away reads memory that nothing wrote. A kernel of NaN meets the padding too.
    ("^grid_sampler.* 1: NaN first", GIVES, VALUES),
    (r"^nn\.functional\.pad \[20 0: last dims exchanged", GIVES, VALUES),
    (r"^conv_tbc .* 1: NaN first", GIVES, VALUES),
    # One sample has no area below it, whatever it is; sums of uint8 do not overflow.
    (r"^trapezoid \[2 .*NaN first|^trapezoid .*uint8", GIVES, VALUES),
    # Attention as it is described: masks of any rank, causal too, and leading dims that broadcast,
    # also of size 0. PyTorch reads keys that are not there, and its kernel drops rows of NaN.
    ("product_attention", GIVES, "^gives (shape|values of float64$)"),
    ("product_attention", GIVES, "^IndexError: Dimension (out of range|specified as -2)"),
    ("product_attention", GIVES, "^RuntimeError: .*(t match the broadcast|Explicit attn_mask)"),
    (
        "product_attention",
        "must have the same|broadcast|between 0 and 1|must divide",
        GIVES,
    ),
    # Factors, as they broadcast.
    ("^(linalg.solve_ex|triangular_solve) ", GIVES, "^gives 1: shape"),
    # The dtype of a mixture is that of its promotion, also where there is nothing to compute.
    (r"^nn\.functional\..*(float16|float32|complex128)", GIVES, "^gives (float64|complex128), not"),
    (r"^(cdist \[1[01]|trapezoid \[3|vander \[0).*", GIVES, "^gives (float64|float32|uint8), not"),
    # Mixtures with float16 are rounded to it in other places, or not at all.
    (
        r"^(nn\.functional\.\w*(loss|entropy\w*|kl_div)|cosine_similarity|ldexp_?) .*float16",
        GIVES,
        VALUES,
    ),
]

# What may differ besides in the calls of PyTorch's op database. Where both libraries give
# something, only these lines count.
DATABASE = [
    # What PyTorch 2.14 does otherwise: bounds are cast before they are counted from, half precision
    # has complex numbers, factors without elements need no gradient.
    (r"^arange \[int64", GIVES, "^gives shape"),
    (r"^polar \[float16", DTYPE, GIVES),
    ("^addbmm .* gradient", GIVES, "^gives 0: None"),
    # Errors
    # Of several mistakes another one is found first; any argument of another type is a TypeError.
    ("^narrow .error", "^TypeError", "must be an 0-dim integral Tensor"),
    ("^narrow_copy .error", "^IndexError: .*out of range", "Expected dim <"),
    ("^arange .error", "can't be cast", "step must be nonzero"),
    ("^nn.functional.multi_margin_loss .error", "of dtype int64", "one-dimensional"),
    # An out= of another dtype is cast to; one that shares memory with an argument is written last.
    (ANY, GIVES, "^RuntimeError: .*(out tensor to have dtype|expects Long tensor out)"),
    # Methods need a tensor first.
    ("^__r.*error", "^TypeError: descriptor", GIVES),
    ("^cat .error", GIVES, "resize storage that is not resizable"),
    # One dim is no batch of channels.
    ("^nn.functional.batch_norm ", "at least 2 dims", GIVES),
    # Values
    # Which of equal elements comes first, where no order was asked for.
    (r"^((arg)?sort|kthvalue|topk|mode) \[", GIVES, r"^gives (1: )?values of int64$"),
    # There is no complex32.
    (r"^(view_as_)?complex \[float16", DTYPE, GIVES),
    # Bytes stay bytes where einsum sums over a dim of one operand.
    (r"^einsum \[uint8", GIVES, "^gives uint8, not int64$"),
    # Half types: images are read at places of single precision; a quotient is cut off unrounded,
    # sums and matrices are rounded once; the statistics of a norm are float32.
    (r"grid_sample\w* \[b?float16", GIVES, VALUES),
    (r"^(div.trunc_rounding|matrix_exp|.*soft_margin_loss) \[b?float16", GIVES, VALUES),
    (r"^native_\w+_norm \[b?float16", GIVES, "1: float32, not b?float16, 2: float32"),
    # Resized bytes differ by 1, as PyTorch's weights are integers; its differences of bytes wrap.
    (r"interpolate\.bi\w+ \[uint8", GIVES, VALUES),
    (r"(pairwise_distance|triplet_margin_loss|margin_ranking_loss) \[uint8", GIVES, VALUES),
    # PyTorch's digits end after the sixth.
    (r"^special\.bessel_(j0|y1) ", GIVES, VALUES),
    # Mistakes of PyTorch with an out= that is not row-major, or resized after another shape.
    (r"(avg_pool3d|narrow_copy) .*other strides", GIVES, VALUES),
    ("^(matmul|nn.functional.linear) .*other strides", GIVES, "must match the size of tensor b"),
    ("^fft.ihfft[2n] .* out", GIVES, "^gives (values of complex128|shape)"),
    ("^nonzero .* out", GIVES, "must be Tensor, not tuple"),
    # Unique slices lie as the input here.
    ("^unique .* strides", GIVES, GIVEN),
    # Factors are resized here into the order of the result, there row-major in old functions.
    (r"^(cholesky\w*|geqrf|ormqr|lu) .* out.* strides", GIVES, GIVEN),
    # Gradients
    # PyTorch's is 0 beside the places and has that of another element in them.
    ("^as_strided_scatter .* gradient", GIVES, GIVEN),
    # Statistics and windows have gradients; residuals that are not there, and A^0, have none.
    (r"^native_\w+_norm .* (requires_grad|gradient|tangent)", GIVES, GIVEN),
    ("^native_batch_norm .* out", "keyword argument 'out'", ANY),
    ("^istft .* gradient", GIVES, "not None$"),
    ("^linalg.lstsq.* requires_grad", GIVES, "1: False, not True"),
    ("^linalg.matrix_power .* requires_grad", GIVES, "0: False, not True"),
    # An element that is named twice: as in the gradient, the tangents of both writes add up.
    ("max_unpool.d .* tangent", GIVES, GIVEN),
    # PyTorch's tangent is that of the other triangle, or has lost digits, or is NaN.
    ("^cholesky_inverse .* tangent", GIVES, GIVEN),
    ("^logcumsumexp .* tangent", GIVES, GIVEN),
]

SKIPPED = [
    # PyTorch crashes, or reads what lies beside its tensors.
    r"^embedding_bag \[(\d 2: no (rows|columns)|[67] 2: one row)",
    "ctc_loss.* 1: 100 (more|less)",
    r"^linalg.lstsq .*(NaN|no columns)",
    r"^(linalg.)?matrix_power .*-9223372036854775808",
    "^combinations .* 9223372036854775807",  # where PyTorch 2.14 does not end
    "(^max|lp)_pool1d .*9223372036854775807",
    "^linalg.eigvals .*NaN",
    "^lu_unpack .*[01]: ",
    "^(lu_unpack|tri[lu]) .*other strides",
    "^segment_reduce .*(twice|one row)",
    r"product_attention \[14 1: no rows",
]


def is_accepted(case: str, ours: str, theirs: str, table: Table = ACCEPTED) -> bool:
    """Whether a difference has a reason in the table."""
    return any(
        re.search(where, case) and re.search(a, ours, re.S) and re.search(b, theirs, re.S)
        for where, a, b in table
    )


def is_accepted_in_database(case: str, ours: str, theirs: str) -> bool:
    """Whether a difference in a call of the op database has a reason."""
    both_give = re.search(GIVES, ours) and re.search(GIVEN, theirs)
    return is_accepted(case, ours, theirs, DATABASE if both_give else ACCEPTED + DATABASE)


def is_skipped(case: str) -> bool:
    """Whether a call would end PyTorch's process, or has no single answer."""
    return any(re.search(where, case) for where in SKIPPED)
