"""SciPy and scikit-learn on tensors against the same on NumPy's arrays; run as a program.

Both libraries decide on the array API when they are imported, so this is a process of its own. It
prints a line for each function that fails: its name and why.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight as torch

warnings.simplefilter("ignore")

generator = np.random.default_rng(0)
X = generator.normal(size=(40, 5))
Y = (X[:, 0] + X[:, 1] / 2 > 0).astype(np.int64)
x, y = X[:, 0], X[:, 1]
positive = np.abs(x) + 0.1

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


def scipy_cases() -> Iterator[Case]:
    from scipy import integrate, ndimage, optimize, signal, special, stats
    from scipy.cluster import vq

    for name in ("ndtr", "erf", "expit", "i0", "log_ndtr", "softmax", "logsumexp", "digamma"):
        yield f"special.{name}", getattr(special, name), (x,)
    for name in ("gammainc", "xlogy", "betaln", "rel_entr"):
        yield f"special.{name}", getattr(special, name), (positive, positive + 1)
    for name in ("zscore", "skew", "kurtosis", "circmean", "normaltest", "sem", "rankdata"):
        yield f"stats.{name}", getattr(stats, name), (X,)
    for name in ("ttest_ind", "pearsonr", "ttest_rel", "mannwhitneyu", "kruskal"):
        yield f"stats.{name}", getattr(stats, name), (x, y)
    for name in ("gmean", "entropy", "hmean"):
        yield f"stats.{name}", getattr(stats, name), (positive,)
    yield "signal.detrend", signal.detrend, (x,)
    if hasattr(torch, "fft"):
        for name in ("hilbert", "envelope"):
            yield f"signal.{name}", getattr(signal, name), (x,)
        for name in ("fftconvolve", "oaconvolve"):
            yield f"signal.{name}", getattr(signal, name), (x, y[:7])
        yield "signal.resample", signal.resample, (x, 20)
    coefficients = np.array([1.0, 0.5]), np.array([1.0, -0.2])
    yield "signal.lfilter", signal.lfilter, (*coefficients, x)
    yield "signal.filtfilt", signal.filtfilt, (*coefficients, x)
    yield "integrate.trapezoid", integrate.trapezoid, (x,)
    yield "integrate.cumulative_simpson", integrate.cumulative_simpson, (x,)
    yield "optimize.rosen", optimize.rosen, (x,)
    yield "cluster.vq.whiten", vq.whiten, (X,)
    yield "ndimage.gaussian_filter", ndimage.gaussian_filter, (X, 1.0)


def fit(make: Callable[[], Any], result: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda X, Y: result(make().fit(X, Y), X)


def sklearn_cases() -> Iterator[Case]:
    from sklearn import (
        decomposition,
        discriminant_analysis,
        linear_model,
        metrics,
        model_selection,
        naive_bayes,
        preprocessing,
    )
    from sklearn.metrics import pairwise

    def transformed(model: Any, X: Any) -> Any:
        return model.transform(X)

    def decided(model: Any, X: Any) -> Any:
        return model.decision_function(X)

    for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer"):
        yield name, fit(getattr(preprocessing, name), transformed), (X, Y)
    yield "PolynomialFeatures", fit(preprocessing.PolynomialFeatures, transformed), (X, Y)
    yield "LabelEncoder", lambda Y: preprocessing.LabelEncoder().fit_transform(Y), (Y,)
    gaussian = fit(naive_bayes.GaussianNB, lambda model, X: model.predict_proba(X))
    yield "GaussianNB", gaussian, (X, Y)
    logistic = fit(linear_model.LogisticRegression, lambda model, X: model.predict_proba(X))
    yield "LogisticRegression", logistic, (X, Y)
    yield "train_test_split", lambda X: model_selection.train_test_split(X, random_state=0), (X,)
    for name in ("r2_score", "mean_squared_error", "mean_absolute_error", "max_error"):
        yield name, getattr(metrics, name), (x, y)
    for name in ("accuracy_score", "f1_score", "confusion_matrix", "jaccard_score"):
        yield name, getattr(metrics, name), (Y, Y[::-1].copy())
    yield "log_loss", metrics.log_loss, (Y, 1 / (1 + np.exp(-x)))
    for name in ("cosine_similarity", "euclidean_distances", "rbf_kernel", "manhattan_distances"):
        yield f"pairwise.{name}", getattr(pairwise, name), (X, X + 1)
    if not hasattr(torch.linalg, "svd"):
        return
    for solver in ("full", "covariance_eigh"):

        def pca(solver: str = solver) -> Any:
            return decomposition.PCA(2, svd_solver=solver)

        yield f"PCA {solver}", fit(pca, lambda model, X: abs(model.transform(X))), (X, Y)
    lda = discriminant_analysis.LinearDiscriminantAnalysis
    yield "LinearDiscriminantAnalysis", fit(lda, decided), (X, Y)
    ridge = fit(lambda: linear_model.Ridge(solver="svd"), lambda model, X: model.predict(X))
    yield "Ridge", ridge, (X, Y.astype(float))


def compare(actual: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        for mine, theirs in zip(actual, expected, strict=True):
            compare(mine, theirs)
        return
    if isinstance(expected, np.ndarray) and expected.ndim:
        assert isinstance(actual, torch.Tensor), f"gave a {type(actual).__name__}"
    if hasattr(expected, "statistic"):
        actual, expected = actual.statistic, expected.statistic
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6, atol=1e-9)


def main(library: str) -> None:
    if library == "sklearn":
        import sklearn

        sklearn.set_config(array_api_dispatch=True)
    count = 0
    for name, function, args in {"scipy": scipy_cases, "sklearn": sklearn_cases}[library]():
        count += 1
        try:
            tensors = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
            compare(function(*tensors), function(*args))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"tried {count}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
